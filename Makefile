# `make` explains itself: the text after ## is what `make help` prints.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Tests and benchmarks start many processes; each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PROTO_VENV := .venv-proto
# The Python that environments are made of; by default the first one that is new enough.
PYTHON ?= $(shell scripts/find_python.sh 10)
# protoc of this release generates code that protobuf 4.25, 5, 6 and 7 all load; it has wheels up to Python 3.12.
PROTO_TOOLS := grpcio-tools==1.62.3
# Tests run in so many processes; `make test TEST_PROCESSES=0` runs them in one that can be debugged.
TEST_PROCESSES ?= auto
# More arguments for the command of a target:  make test ARGS="tests/io -k local"
ARGS ?=

PROTOS := $(wildcard protos/*.proto)
CODEC_SOURCES := $(wildcard src/lancecodec/*.pyx src/lancecodec/*/*.pyx src/lancecodec/*.pxd src/lancecodec/kernels/*.h)
LINTED := src tests benchmarks demo scripts setup.py

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- environment -----------------------------------------------------------------------------------------------------

$(VENV)/.stamp-venv:
	@test -n "$(PYTHON)" || exit 1
	@echo "Making the virtual environment $(VENV)"
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip "setuptools>=77" "Cython>=3.2"
	@touch $@

$(VENV)/.stamp-ext: $(VENV)/.stamp-venv setup.py $(CODEC_SOURCES)
	@echo "Compiling the codec core (about two minutes on two processors if all of it is new)"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

# --no-build-isolation: the editable install finds the modules that were just compiled.
$(VENV)/.stamp-install: $(VENV)/.stamp-venv pyproject.toml setup.py | $(VENV)/.stamp-ext
	@echo "Installing the package and everything for development"
	@$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	@touch $@ $(VENV)/.stamp-demo

$(VENV)/.stamp-demo: $(VENV)/.stamp-venv pyproject.toml setup.py | $(VENV)/.stamp-ext
	@echo "Installing the package, PySpark and the flight data"
	@$(BIN)/python -m pip install --quiet --progress-bar on --no-build-isolation --editable ".[demo]"
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp-install
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[bench]"
	@touch $@

.PHONY: venv
venv: $(VENV)/.stamp-venv ## An empty virtual environment in .venv

.PHONY: install
install: $(VENV)/.stamp-install ## The package, editable, with everything for development, in .venv

.PHONY: build-ext
build-ext: $(VENV)/.stamp-ext ## Rebuild the compiled modules whose sources changed

# ---- checks ----------------------------------------------------------------------------------------------------------

.PHONY: test
test: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## Run the tests (installs what they need: Java, PostgreSQL, Azurite, Chromium)
	scripts/ensure_java.sh
	scripts/ensure_servers.sh
	scripts/ensure_browser.sh
	scripts/old_releases.sh
	$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) $(ARGS)

.PHONY: lint
lint: $(VENV)/.stamp-docs $(VENV)/.stamp-ext ## Style, types, import directions, words of docstrings, links of the site
	$(BIN)/ruff check $(LINTED)
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/mypy
	$(BIN)/mypy tests/typing/public_face.py
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(BIN)/python scripts/lint_private.py
	$(BIN)/python scripts/lint_prose.py
	$(BIN)/python scripts/lint_codec.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: format
format: $(VENV)/.stamp-install ## Let ruff rewrite what it can
	$(BIN)/ruff check --fix $(LINTED)
	$(BIN)/ruff format $(LINTED)

.PHONY: wheel
wheel: $(VENV)/.stamp-install ## Build a wheel, install it into a clean environment, do a round trip with it
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel .
	"$(PYTHON)" -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet build/wheel/*.whl
	cd build/wheel && venv/bin/python ../../scripts/smoke_test.py
	mkdir -p dist && cp build/wheel/*.whl dist/

# ---- the rest --------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.stamp-demo $(VENV)/.stamp-ext ## Flight data through Spark into a dataset, beside Parquet
	scripts/ensure_java.sh
	$(BIN)/python -m demo.flights $(ARGS)

.PHONY: demo-pipeline
demo-pipeline: $(VENV)/.stamp-demo $(VENV)/.stamp-ext ## Flights and texts through a pipeline on Spark: streams, upserts, searches
	scripts/ensure_java.sh
	$(BIN)/python -m demo.pipeline $(ARGS)

$(VENV)/.stamp-docs: $(VENV)/.stamp-install
	$(BIN)/python -m pip install --quiet --group docs
	@touch $@

.PHONY: docs
docs: $(VENV)/.stamp-docs $(VENV)/.stamp-ext ## The site in build/site: tutorials, guide, reference; links are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict $(ARGS)

.PHONY: bench
bench: $(VENV)/.stamp-bench $(VENV)/.stamp-ext ## Side by side with pylance, Parquet and Vortex
	$(BIN)/python benchmarks/compare.py $(ARGS)

.PHONY: fuzz
fuzz: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## Random calls of the codec core with sanitizers, and libFuzzer on its kernels (needs clang; PYTHON_ONLY=1 leaves it out)
	$(BIN)/python scripts/fuzz_codec.py --sanitize $(ARGS)
	$(if $(PYTHON_ONLY),,$(BIN)/python scripts/fuzz_kernels.py)
	$(BIN)/python tests/fuzz/fuzz_pages.py --cases 20000
	$(BIN)/python tests/fuzz/fuzz_file.py --cases 5000
	$(BIN)/python tests/fuzz/fuzz_file_v0_1.py --cases 5000
	$(BIN)/python tests/fuzz/fuzz_manifest.py --cases 5000
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q tests/interop/test_structural.py

.PHONY: first-contact
first-contact: ## The tasks of newcomers, in a new environment that has only the package with its command line
	rm -rf .venv-first-contact && "$(PYTHON)" -m venv .venv-first-contact
	.venv-first-contact/bin/python -m pip install --quiet ".[cli]"
	.venv-first-contact/bin/python tests/first_contact .venv-first-contact/bin/python

MINUTES ?= 60
PROCESSES ?= 1
.PHONY: soak
soak: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## Damage whole datasets, and read and change them; then work on a MemWAL:  make soak MINUTES=60 PROCESSES=2 ARGS="--seed 1"
	$(BIN)/python -W ignore tests/fuzz/datasets/__main__.py --minutes $(MINUTES) --processes $(PROCESSES) $(ARGS)
	$(BIN)/python scripts/soak_mem_wal.py --minutes $(MINUTES)

.PHONY: stress
stress: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## 16 processes beside pylance on one dataset, every crash point, bad networks, long random histories, shards, killed Spark (2 hours)
	$(BIN)/python scripts/stress.py $(ARGS)
	LANCE_STRESS=1 $(BIN)/python -m pytest -q --timeout=1800 tests/faults/test_crash.py tests/faults/test_kill.py tests/faults/test_faulty_store.py tests/faults/test_bad_disk.py
	LANCE_STRESS=1 $(BIN)/python -m pytest -q --timeout=1800 tests/faults/test_chaos.py
	LANCE_STRESS=1 $(BIN)/python -m pytest -q --timeout=1800 tests/changes/test_sequences.py
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q --timeout=1800 tests/interop/writers/test_two_handles.py
	$(BIN)/python scripts/spark_kills.py driver
	$(BIN)/python scripts/spark_kills.py executor
	LANCE_STRESS=1 $(BIN)/python -m pytest -q --timeout=1800 tests/memwal/test_crashes.py tests/memwal/test_store_faults.py tests/memwal/test_model.py
	LANCE_STRESS=1 $(BIN)/python -m pytest -q --timeout=1800 tests/file/structural/test_type_matrix.py tests/interop/test_types.py tests/calls tests/programs

.PHONY: compatibility
compatibility: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## Run 17 releases of pylance against this package and write docs/compatibility.md (20 minutes)
	$(BIN)/python scripts/compatibility.py $(ARGS)

.PHONY: older-processor
older-processor: $(VENV)/.stamp-install ## Run tests of the codec core on an emulated processor without AVX2
	PYTHON=$(BIN)/python scripts/older_processor.sh

.PHONY: spark-releases
spark-releases: $(VENV)/.stamp-install $(VENV)/.stamp-ext ## Run the tests of Spark with older releases of it (20 minutes)
	PYTHON=$(BIN)/python scripts/spark_releases.sh -n $(TEST_PROCESSES) $(ARGS)

.PHONY: portability
portability: $(VENV)/.stamp-venv ## Compile and run the kernels with gcc and clang, and for aarch64 where that is possible
	PYTHON=$(BIN)/python scripts/portability.sh

$(PROTO_VENV)/.stamp: Makefile
	rm -rf $(PROTO_VENV)
	"$$(scripts/find_python.sh 9 12)" -m venv $(PROTO_VENV)
	$(PROTO_VENV)/bin/python -m pip install --quiet "$(PROTO_TOOLS)" "setuptools<81"
	@touch $@

.PHONY: proto
proto: $(PROTO_VENV)/.stamp $(PROTOS) ## Generate src/lance_dataset/_proto from protos/
	$(PROTO_VENV)/bin/python scripts/make_proto.py

.PHONY: clean
clean: ## Remove everything that was built, environments included
	rm -rf $(VENV) $(PROTO_VENV) .venv-pylance-* build dist .demo .servers src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f src/lancecodec/{,search/}*.{so,pyd,c}
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
