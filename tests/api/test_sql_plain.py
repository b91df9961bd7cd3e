"""Statements that are answered without a planner give what DataFusion gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.api import sql
from lance_dataset.api.sql_plain import plain_query
from lance_dataset.errors import InvalidInputError, MemoryLimitError

_PLAIN = [
    "SELECT * FROM dataset",
    "select * from Dataset limit 3;",
    "SELECT ID, s FROM dataset LIMIT 100",
    "SELECT date\nFROM dataset",
    "SELECT count(*) FROM dataset",
    "SELECT COUNT ( * ) AS N FROM dataset LIMIT 5",
    "SELECT id FROM dataset WHERE id < 2",
    "select s, ID from dataset where s <> 'it''s' and kept>=-3 and date is not null limit 5",
    "SELECT count(*) FROM dataset WHERE s IS NULL AND kept != 1",
    "SELECT * FROM dataset WHERE id = 300000",
    "SELECT json_get_int(j, 'a') AS V, json_exists(j, '$[*]?(@.a == 1)') FROM dataset WHERE j IS NOT NULL",
    "SELECT id, json_get(j, 'it''s') FROM dataset WHERE json_get_int(j, 'a') = 1 AND json_exists(j, '$.a')",
    "SELECT id FROM dataset WHERE json_array_length(j, '$') <= 0 LIMIT 2",
]
_OTHERS = [
    "SELECT * FROM dataset LIMIT 0",
    "SELECT id FROM dataset WHERE id < 2 OR id = 3",
    "SELECT id FROM dataset WHERE id < 2.5",
    "SELECT id FROM dataset WHERE 2 < id",
    "SELECT id FROM dataset WHERE id < 2 - 1",
    "SELECT id FROM dataset WHERE id < 99999999999",
    "SELECT id FROM dataset WHERE code = 'x'",
    "SELECT id FROM dataset WHERE NOT s = 'a'",
    "SELECT id FROM dataset WHERE json_get_float(j, 'a') = 1",
    "SELECT id FROM dataset WHERE s = 'a' ORDER BY id",
    "SELECT id, json_get(j, s), json_get_int(j, 'a') AS v FROM dataset WHERE json_exists(j, '$.a') ORDER BY id",
    "SELECT id n FROM dataset",
    "SELECT DISTINCT kept FROM dataset WHERE id = 3",
    "SELECT count(id) FROM dataset",
    "SELECT null FROM dataset",
    "SELECT 1 FROM dataset",
    "SELECT * FROM dataset LIMIT 2 OFFSET 1",
    "SELECT * FROM dataset -- all",
]
_WRONG = [
    "SELECT Upper FROM dataset",
    "SELECT missing FROM dataset",
    "SELECT id, id FROM dataset",
    "SELECT * FROM other",
    "SELECT * FROM dataset LIMIT x",
    "SELECT id FROM dataset WHERE missing = 1",
    "SELECT id FROM dataset WHERE s = 1",
    "SELECT json_get_int(missing, 'a') FROM dataset",
    "SELECT id FROM dataset WHERE s = 'a",
    "SELECT id FROM dataset WHERE",
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    table = pa.table(
        {
            "id": pa.array([1, 2, 3, 4], pa.int32()),
            "s": ["a", None, "c", "d"],
            "Upper": [1.5, None, 2.5, 3.5],
            "date": pa.array([1, 2, None, 4], pa.date32()),
            "null": [True, False, None, True],
            "code": pa.array(["x", "y", "x", None]).dictionary_encode(),
            "nested": [{"a": [1]}, {"a": None}, None, {"a": []}],
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a":1}', None, "[]", "1"])),
        }
    )
    kept = pa.field("kept", pa.int64(), nullable=False, metadata={"unit": "m"})
    table = table.append_column(kept, pa.array([1, 2, 3, 4])).replace_schema_metadata({"of": "table"})
    made = lance_dataset.write_dataset(table, tmp_path_factory.mktemp("sql") / "t", max_rows_per_file=2)
    made.delete("id = 2")
    return made


@pytest.mark.parametrize("query", [*_PLAIN, *_OTHERS])
def test_the_answer_is_that_of_the_planner(dataset, monkeypatch, query):
    for build in (lambda made: made, lambda made: made.with_row_id().with_row_addr(), lambda made: made.batch_size(1)):
        built = build(dataset.sql(query)).build()
        batches, stream = built.to_batch_records(), built.to_stream_reader()
        with monkeypatch.context() as patch:
            patch.setattr(sql, "plain_query", lambda *_: None)
            expected = build(dataset.sql(query)).build().to_batch_records()
            reader = build(dataset.sql(query)).build().to_stream_reader()
        assert stream.schema.equals(reader.schema, check_metadata=True)
        assert stream.read_all().equals(reader.read_all())
        assert [batch.schema.to_string() for batch in batches] == [batch.schema.to_string() for batch in expected]
        # DataFusion puts the rows of small batches together after a condition
        assert batches == expected or (
            "where" in query.lower() and pa.Table.from_batches(batches) == pa.Table.from_batches(expected)
        )


def test_which_statements_are_plain(dataset):
    assert [query for query in _PLAIN if plain_query(query, "dataset", dataset.schema) is None] == []
    assert [query for query in (*_OTHERS, *_WRONG) if plain_query(query, "dataset", dataset.schema)] == []


@pytest.mark.parametrize("end", ["", " ORDER BY id"])
@pytest.mark.parametrize("test", ["json_exists(j, '$..')", "json_get_int(j, 'a') = 1"])
def test_errors_of_functions_name_the_reason(tmp_path, test, end):
    documents = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a":[]}']))
    made = lance_dataset.write_dataset(pa.table({"j": documents, "id": [1]}), tmp_path / "t")
    with pytest.raises(InvalidInputError, match=r"SQL: .*(invalid JSONPath|not a valid integer)"):
        made.sql(f"SELECT id FROM dataset WHERE {test}{end}").build().to_batch_records()


@pytest.mark.parametrize("query", _WRONG)
def test_wrong_statements_are_refused_by_the_planner(dataset, query):
    with pytest.raises(InvalidInputError, match="SQL: "):
        dataset.sql(query).build().to_batch_records()


def test_plain_statements_keep_the_limit_of_results(dataset):
    limited = lance_dataset.dataset(dataset.uri, max_result_bytes=16)
    with pytest.raises(MemoryLimitError):
        limited.sql("SELECT * FROM dataset").build().to_batch_records()
    with pytest.raises(MemoryLimitError):
        limited.sql("SELECT * FROM dataset").build().to_stream_reader().read_all()
