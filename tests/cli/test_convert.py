"""Tests of `convert`: files to datasets, datasets to files, and back without a loss."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from support.processes.cli_runs import run, run_json

import lance_dataset as lance

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "name": ["a", None, 'it\'s, "quoted"\nand more'],
        "share": [0.5, 1.25, None],
    }
)
NESTED = TABLE.append_column("tags", pa.array([["x"], [], None])).append_column("raw", pa.array([b"\0", b"", None]))


def _image(color: str, kind: str) -> bytes:
    opened = io.BytesIO()
    Image.new("RGB", (3, 2), color).save(opened, kind)
    return opened.getvalue()


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "ndjson", "jsonl", "arrow"])
def test_there_and_back(tmp_path: Path, suffix: str) -> None:
    table = TABLE if suffix in ("csv", "json", "ndjson", "jsonl") else NESTED
    made = tmp_path / "x.lance"
    lance.write_dataset(table, made)
    file = tmp_path / f"x.{suffix}"
    facts = run_json("convert", made, file)
    assert facts == {"target": str(file), "format": "ndjson" if suffix == "jsonl" else suffix, "rows": 3}
    back = tmp_path / "back.lance"
    assert run_json("convert", file, back)["rows"] == 3
    assert lance.dataset(back).to_table().equals(table)
    assert {path.name for path in tmp_path.iterdir()} == {"back.lance", "x.lance", file.name}


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "ndjson", "arrow"])
def test_no_rows(tmp_path: Path, suffix: str) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(TABLE.slice(0, 0), made)
    file = tmp_path / f"x.{suffix}"
    assert run_json("convert", made, file)["rows"] == 0
    if suffix == "json":
        assert json.loads(file.read_text()) == []
    elif suffix in ("parquet", "arrow"):
        run("convert", file, tmp_path / "back.lance")
        assert lance.dataset(tmp_path / "back.lance").schema == TABLE.schema


def test_part_of_a_version_and_other_files(tmp_path: Path) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(TABLE, made)
    lance.write_dataset(TABLE, made, mode="append")
    file = tmp_path / "part"
    run("convert", made, file, "--to", "parquet", "--filter", "id > 1", "--columns", "id", "--version", 1)
    assert pq.read_table(file).to_pydict() == {"id": [2]}
    run("convert", file, tmp_path / "x.csv", "--from", "parquet")
    assert (tmp_path / "x.csv").read_text() == '"id"\n2\n'
    run("convert", tmp_path / "x.csv", made, status=1)
    assert lance.dataset(made).count_rows() == 6
    run("convert", tmp_path / "x.csv", made, "--overwrite", "--types", "id=int32")
    assert lance.dataset(made).to_table() == pa.table({"id": pa.array([2], pa.int32())})


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        (["{x}"], "at least one source", 2),
        (["{x}", "y.lance"], "--to", 2),
        (["{x}", "{x}", "y.csv"], "alone", 2),
        (["{x}", "y.csv", "--types", "id=int8"], "not for datasets", 2),
        (["{x}", "there.csv"], "--overwrite", 1),
        (["{x}", "there", "--to", "huggingface"], "exists already", 1),
        (["there.csv", "y.lance", "--filter", "id > 1"], "not for files", 2),
        (["{x}", "y", "--to", "images"], "one column of bytes", 1),
        (["nothing", "y.lance"], "no such file", 1),
        (["empty", "y.lance"], "no files to import", 1),
        (["there.csv", "y.lance", "--from", "images"], "no images", 1),
        (["there", "y.lance", "--from", "huggingface"], "expected a name", 1),
        (["there.csv", "y.lance", "--from", "xls"], "not one of", 2),
    ],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str, status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    lance.write_dataset(TABLE, "x.lance")
    (tmp_path / "there.csv").write_text("id\n1\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "there").mkdir()
    pq.write_table(TABLE, tmp_path / "there" / "part.parquet")
    result = run("convert", *(each.format(x="x.lance") for each in arguments), status=status)
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert not any("partial" in path.name for path in tmp_path.iterdir())


@pytest.fixture
def images(tmp_path: Path) -> dict[str, bytes]:
    files = {
        "cat/1.png": _image("red", "PNG"),
        "cat/2.jpg": _image("blue", "JPEG"),
        "dog/old/1.gif": _image("red", "GIF"),
    }
    files["top.PNG"] = _image("green", "PNG")
    for name, content in files.items():
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "images" / "readme.txt").write_text("not an image")
    return files


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_images(tmp_path: Path, images: dict[str, bytes]) -> None:
    made = tmp_path / "x.lance"
    assert run_json("convert", tmp_path / "images", made)["rows"] == 4
    table = lance.dataset(made).to_table()
    assert dict(zip(table["file_name"].to_pylist(), table["image"].to_pylist(), strict=True)) == images
    assert table["label"].to_pylist() == ["cat", "cat", "old", None]
    run("convert", made, tmp_path / "back", "--to", "images")
    assert _files(tmp_path / "back") == images
    run("convert", made, tmp_path / "unnamed", "--to", "images", "--columns", "label,image")
    assert set(_files(tmp_path / "unnamed")) == {
        "cat/00000000.png", "cat/00000001.jpg", "old/00000002.gif", "00000003.png",
    }  # fmt: skip


def test_images_with_metadata(tmp_path: Path, images: dict[str, bytes]) -> None:
    lines = [
        {"file_name": "cat/2.jpg", "text": "blue", "box": [1, 2]},
        {"file_name": "top.PNG", "text": None, "box": []},
    ]
    metadata = tmp_path / "images" / "metadata.jsonl"
    metadata.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    made = tmp_path / "x.lance"
    run("import", tmp_path / "images", made, "--format", "images")
    assert lance.dataset(made).to_table(columns=["text", "box"]).to_pydict() == {
        "text": [None, "blue", None, None],
        "box": [None, [1, 2], None, []],
    }
    run("convert", made, tmp_path / "back", "--to", "images")
    again = tmp_path / "again.lance"
    run("convert", tmp_path / "back", again, "--from", "images")
    wanted = lance.dataset(made).to_table()
    assert lance.dataset(again).to_table().select(wanted.schema.names) == wanted
    metadata.write_text('{"file_name": "a"}\n{"file_name": "a"}\n')
    assert "same as another" in run("import", tmp_path / "images", again, "--format", "images", status=1).stderr


def test_images_of_blobs_and_structs(tmp_path: Path, images: dict[str, bytes]) -> None:
    values = list(images.values())
    columns = {
        "blobs": lance.blob_array(values),
        "structs": pa.array([{"bytes": each, "path": None} for each in values]),
    }
    for name, column in columns.items():
        made = tmp_path / f"{name}.lance"
        lance.write_dataset(pa.table({"image": column}), made, data_storage_version="2.2")
        run("convert", made, tmp_path / name, "--to", "images")
        assert sorted(_files(tmp_path / name).values()) == sorted(values)


@pytest.mark.parametrize(
    "name", ["../x.png", "/x.png", "a/../../x.png", "", None, "a\\..\\x.png", "C:x.png", "metadata.jsonl", ".", "a"]
)
def test_names_of_images_stay_in_the_folder(tmp_path: Path, name: str | None) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(pa.table({"file_name": ["a/b", name], "image": [b"1", b"2"]}), made)
    result = run("convert", made, tmp_path / "out" / "images", "--to", "images", status=1)
    assert "row 1" in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_rows_without_images_are_refused(tmp_path: Path) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(pa.table({"image": pa.array([b"1", None])}), made)
    assert "row 1 has no image" in run("convert", made, tmp_path / "out", "--to", "images", status=1).stderr
    assert not (tmp_path / "out").exists()


FEATURES = {"info": {"features": {"id": {"dtype": "int64", "_type": "Value"}, "image": {"_type": "Image"}}}}


def test_hugging_face(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "image": [{"bytes": b"x", "path": "x"}, None, {"bytes": None, "path": "y"}]})
    rows = rows.replace_schema_metadata({"huggingface": json.dumps(FEATURES)})
    source = tmp_path / "source" / "data"
    source.mkdir(parents=True)
    pq.write_table(rows.slice(0, 1), source / "train-00000-of-00002.parquet")
    pq.write_table(rows.slice(1, 1), source / "train-00001-of-00002.parquet")
    pq.write_table(rows.slice(2), source / "test.hard-00000-of-00001.parquet")
    made = tmp_path / "x.lance"
    assert run_json("convert", tmp_path / "source", made)["rows"] == 3
    assert sorted(lance.dataset(made).to_table()["split"].to_pylist()) == ["test.hard", "train", "train"]
    back = tmp_path / "back"
    run("convert", made, back, "--to", "huggingface")
    assert sorted(_files(back)) == ["data/test.hard-00000-of-00001.parquet", "data/train-00000-of-00001.parquet"]
    found = pq.read_table(back / "data" / "train-00000-of-00001.parquet")
    assert found.equals(rows.slice(0, 2))
    assert json.loads(found.schema.metadata[b"huggingface"]) == FEATURES
    run("convert", made, tmp_path / "part", "--to", "huggingface", "--columns", "id")
    part = pq.read_schema(tmp_path / "part" / "data" / "train-00000-of-00001.parquet")
    assert list(json.loads(part.metadata[b"huggingface"])["info"]["features"]) == ["id"]


def test_hugging_face_in_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_dataset.cli.sinks.folders._SHARD_BYTES", 1)
    made = tmp_path / "x.lance"
    for mode in ("create", "append"):
        lance.write_dataset(pa.table({"split": ["a", "b"], "id": [1, 2]}), made, mode=mode)
    run("convert", made, tmp_path / "out", "--to", "huggingface")
    names = [f"data/{split}-0000{i}-of-00002.parquet" for split in "ab" for i in range(2)]
    assert sorted(_files(tmp_path / "out")) == names
    converted = tmp_path / "converted" / "train"
    converted.mkdir(parents=True)
    pq.write_table(TABLE, converted / "0000.parquet")
    run("import", tmp_path / "converted", tmp_path / "y.lance", "--format", "huggingface")
    assert lance.dataset(tmp_path / "y.lance").count_rows("split = 'train'") == 3


@pytest.mark.parametrize("split", ["../x", "", None, "a/b", "a b"])
def test_wrong_names_of_splits(tmp_path: Path, split: str | None) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(pa.table({"split": ["train", split], "id": [1, 2]}), made)
    result = run("convert", made, tmp_path / "out", "--to", "huggingface", status=1)
    assert "not a name of a split" in result.stderr
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "out.partial").exists()


def test_no_rows_of_hugging_face(tmp_path: Path) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(TABLE.slice(0, 0), made)
    run("convert", made, tmp_path / "out", "--to", "huggingface")
    assert pq.read_schema(tmp_path / "out" / "data" / "train-00000-of-00001.parquet").names == TABLE.schema.names


def test_a_folder_of_tables_with_pictures_is_a_folder_of_tables(tmp_path: Path, images: dict[str, bytes]) -> None:
    pq.write_table(TABLE, tmp_path / "images" / "x.parquet")
    run("import", tmp_path / "images", tmp_path / "x.lance")
    assert lance.dataset(tmp_path / "x.lance").to_table() == TABLE


def test_query_and_sql_are_the_same(tmp_path: Path) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(TABLE, made)
    for command in ("query", "sql"):
        assert run_json(command, made, "select max(id) as most from dataset") == [{"most": 2}]
    assert run("query", made, "select nothing from dataset", status=1).stderr.startswith("error: ")


@pytest.mark.parametrize("kind", ["csv", "images", "huggingface"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    made = tmp_path / "x.lance"
    lance.write_dataset(pa.table({"image": [b"x"]}), made)

    def interrupted(*arguments: object) -> object:
        yield next(iter(lance.dataset(made).to_batches()))
        raise KeyboardInterrupt

    monkeypatch.setattr("lance_dataset.cli.counter.RowCounter.reader", interrupted)
    assert "interrupted" in run("convert", made, tmp_path / "out", "--to", kind, status=130).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.lance"]


@pytest.mark.parametrize("named", [True, False])
def test_labels_that_are_not_names_of_folders_are_kept(tmp_path: Path, named: bool) -> None:
    made, again = tmp_path / "x.lance", tmp_path / "again.lance"
    names = {"file_name": ["a.png", "b/c.png", "dog/d.png"]} if named else {}
    table = pa.table({**names, "label": ["pets/cat", "dog", None], "image": [_image("red", "PNG")] * 3})
    lance.write_dataset(table, made)
    run("convert", made, tmp_path / "out", "--to", "images")
    run("convert", tmp_path / "out", again, "--from", "images")
    assert sorted(map(str, lance.dataset(again).to_table()["label"].to_pylist())) == ["None", "dog", "pets/cat"]


def test_files_of_others_beside_the_target_stay(tmp_path: Path) -> None:
    lance.write_dataset(TABLE, tmp_path / "x.lance")
    mine = tmp_path / "y.csv.partial"
    mine.write_text("mine")
    run("convert", tmp_path / "x.lance", tmp_path / "y.csv")
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.lance", "y.csv", "y.csv.partial"]


@pytest.mark.parametrize("before", ["", '{"a": 1}\n'])
@pytest.mark.parametrize("depth", [129, 900, 100_000])
def test_json_that_is_nested_too_deeply(tmp_path: Path, depth: int, before: str) -> None:
    (tmp_path / "x.ndjson").write_text(before + '{"b":' * depth + "1" + "}" * depth + "\n")
    result = run("convert", tmp_path / "x.ndjson", tmp_path / "x.lance", status=1)
    assert f"row {2 if before else 1}: the values are nested more than 128 levels" in " ".join(result.stderr.split())


def test_json_with_many_brackets(tmp_path: Path) -> None:
    rows = [{"a": [[1]] * 300, "b": "[" * 300 + '\\"' + "{" * 300}] * 2
    (tmp_path / "x.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run("convert", tmp_path / "x.ndjson", tmp_path / "x.lance")
    assert lance.dataset(tmp_path / "x.lance").to_table().to_pylist() == rows
