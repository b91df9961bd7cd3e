#!/usr/bin/env bash
# Runs the tests of Spark with older releases of it: scripts/spark_releases.sh [arguments of pytest ...]
set -euo pipefail
python=${PYTHON:-.venv/bin/python}
# Spark 4.1 has no limits of batches, so that options for them are refused, and no time zones in `to_arrow_schema`.
without=(
    --deselect tests/spark/test_streams.py::test_a_dataset_that_was_made_anew_is_not_taken_for_the_old_one
    --deselect tests/spark/test_streams.py::test_from_one_dataset_to_another_and_on_after_a_stop
    --deselect tests/spark/test_streams.py::TestSource::test_limits_of_a_batch
    --deselect tests/spark/test_change_feed.py::test_limits_of_a_batch_count_changes
    --deselect tests/spark/test_change_feed.py::test_changes_of_one_dataset_keep_another_like_it
    --deselect tests/spark/test_log_upserts.py::test_batches_of_a_query_count_once
    --deselect tests/spark/test_page.py::test_the_examples_run
    --deselect tests/spark/test_types.py::test_layouts_match_what_spark_expects
)
for release in 4.1.4 4.2.1; do
    folder=$PWD/build/pyspark-$release
    [ -d "$folder" ] || "$python" -m pip install --quiet --no-deps --target "$folder" "pyspark==$release"
    PYTHONPATH=$folder SPARK_HOME=$folder/pyspark "$python" -m pytest -q --timeout=600 tests/spark \
        $([ "$release" = 4.1.4 ] && echo "${without[@]}") "$@"
done
