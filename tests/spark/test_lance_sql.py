"""Tests of statements that Spark's parser does not know."""

from __future__ import annotations

import lance as reference
import pyarrow as pa
import pytest

import lance_dataset
from lance_dataset.errors import InvalidInputError, LanceError, UnsupportedError
from lance_dataset.spark import lance_sql
from lance_dataset.spark.statements.cursor import Cursor


@pytest.fixture
def stored(uri):
    table = pa.table({"id": range(12), "name": [f"n{i % 4}" for i in range(12)]})
    lance_dataset.write_dataset(table, uri, max_rows_per_file=4)
    return uri


@pytest.fixture
def sql(spark, stored):
    def run(statement):
        return [row.asDict() for row in lance_sql(spark, statement, tables={"t": stored}).collect()]

    return run


def rows(uri):
    return sorted(tuple(row.values()) for row in reference.dataset(uri).to_table().to_pylist())


def test_updates_and_deletes(sql, stored):
    assert sql("UPDATE t SET name = concat('x', name), id = id + 100 WHERE id IN (1, 2)") == [{"num_updated_rows": 2}]
    assert sql(f"DELETE FROM '{stored}' WHERE id BETWEEN 3 AND 10") == [{"num_deleted_rows": 8}]
    assert rows(stored) == [(0, "n0"), (11, "n3"), (101, "xn1"), (102, "xn2")]
    assert sql("delete from t;") == [{"num_deleted_rows": 4}]


def test_merges(spark, sql, stored):
    spark.createDataFrame([(11, "new"), (12, "twelve")], "id bigint, name string").createOrReplaceTempView("updates")
    statement = """MERGE INTO t AS a USING updates AS b ON a.id = b.id
        WHEN MATCHED AND b.name <> a.name THEN UPDATE SET * -- the newest name
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND a.id < 10 THEN DELETE"""
    assert sql(statement) == [{"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 10}]
    assert rows(stored) == [(10, "n2"), (11, "new"), (12, "twelve")]
    statement = "MERGE INTO t USING (SELECT 12L id, 'x' name) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    with pytest.raises(InvalidInputError, match="neither the table nor the source"):
        sql(statement)
    assert sql(statement.replace("INTO t USING", "INTO t AS t USING"))[0]["num_deleted_rows"] == 1
    spark.catalog.dropTempView("updates")


def test_columns(spark, sql, stored):
    sql("ALTER TABLE t ADD COLUMN double AS id * 2, half AS (id / 2)")
    sql("ALTER TABLE t ADD COLUMNS (note string, price decimal(10,2))")
    sql("ALTER TABLE t RENAME COLUMN double TO twice")
    sql("ALTER TABLE t ALTER COLUMN id TYPE int")
    sql("ALTER TABLE t DROP COLUMNS (half, price)")
    spark.range(3).selectExpr("cast(id AS int) id", "id * id AS square").createOrReplaceTempView("squares")
    sql("ALTER TABLE t ADD COLUMNS square FROM squares ON id")
    found = reference.dataset(stored)
    assert found.schema.names == ["id", "name", "twice", "note", "square"]
    assert found.schema.field("id").type == pa.int32()
    assert found.to_table()["square"].to_pylist() == [0, 1, 4] + [None] * 9
    sql("ALTER TABLE t ALTER COLUMN name SET NOT NULL")
    assert not lance_dataset.dataset(stored).schema.field("name").nullable
    sql("ALTER TABLE t ALTER COLUMN name DROP NOT NULL")
    spark.catalog.dropTempView("squares")


def test_compaction_and_indices(sql, stored):
    assert sql("OPTIMIZE t WITH (target_rows_per_fragment = 6)")[0]["fragments_added"] == 2
    sql("CREATE INDEX by_id ON t USING btree (id)")
    sql(f"ALTER TABLE lance.`{stored}` CREATE INDEX by_name USING bitmap (name) WITH (segments = 1)")
    found = {row["name"]: row for row in sql("SHOW INDEXES FROM t")}
    assert {name: (row["kind"], row["segments"]) for name, row in found.items()} == {
        "by_id": ("BTree", 2), "by_name": ("Bitmap", 1)
    }  # fmt: skip
    sql("OPTIMIZE INDICES ON t")
    sql("OPTIMIZE INDEX by_id ON t")
    sql("DROP INDEX by_id ON t")
    sql("ALTER TABLE t DROP INDEX by_name")
    assert sql("SHOW INDICES IN t") == []


def test_versions_tags_and_branches(sql, stored):
    sql("DELETE FROM t WHERE id > 5")
    history = sql("DESCRIBE HISTORY t")
    assert [(row["version"], row["operation"]) for row in history] == [(1, "Overwrite"), (2, "Delete")]
    assert sql("CREATE TAG first ON t AS OF VERSION 1") == [{"version": 1}]
    assert sql("ALTER TABLE t CREATE TAG second") == [{"version": 2}]
    assert [(row["name"], row["version"]) for row in sql("SHOW TAGS FROM t")] == [("first", 1), ("second", 2)]
    assert sql("DROP TAG second ON t") == [{"version": 2}]
    sql("CREATE BRANCH side ON t AS OF VERSION 1")
    assert [(row["name"], row["parent_version"]) for row in sql("SHOW BRANCHES FROM t")] == [("side", 1)]
    sql("DROP BRANCH side ON t")
    assert sql("RESTORE TABLE t TO VERSION AS OF 1") == [{"version": 3}]
    assert len(rows(stored)) == 12
    sql("RESTORE t TO TAG first")
    assert sql("DROP TAG first ON t")
    assert sql("VACUUM t RETAIN 1 VERSIONS")[0]["old_versions"] == 3
    assert sql("VACUUM t RETAIN 7 DAYS") == [{"bytes_removed": 0, "old_versions": 0}]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT 1", r"expected one of OPTIMIZE, .* \(spark.sql runs other statements\), but found 'SELECT'"),
        ("", "but the statement ends"),
        ("OPTIMIZE nix", "its path in quotes"),
        ("OPTIMIZE t WITH (a 1)", "expected =, but found '1' "),
        ("OPTIMIZE t WITH (a = b)", "expected a number, a text"),
        ("OPTIMIZE t now", "expected the end, but found 'now'"),
        ("VACUUM t RETAIN 3", "expected MINUTES, HOURS"),
        ("VACUUM t RETAIN x", "expected a number"),
        ("UPDATE t SET id", "expected =, but the statement ends"),
        ("UPDATE t SET id = WHERE id = 1", "expected an expression"),
        ("UPDATE t SET id = 'x", "is never closed"),
        ("DELETE t", "expected one of"),
        ("MERGE INTO t USING v ON t.id = v.key WHEN MATCHED THEN DELETE", "neither the table"),
        ("MERGE INTO t a USING v b ON a.id = b.id", "expected WHEN MATCHED"),
        ("MERGE INTO t a USING v b ON a.id = b.id WHEN MATCHED THEN UPDATE SET id = 1", r"expected UPDATE SET \*"),
        ("ALTER TABLE t ADD COLUMN x", "expected a type for every column"),
        ("ALTER TABLE t MOVE", "expected ADD, DROP"),
        ("CREATE INDEX i ON t USING btree (a, b)", "expected one column"),
        ("SHOW TAGS t", "expected FROM"),
        ("RESTORE t TO 3", "expected VERSION"),
    ],
)
def test_statements_that_cannot_be_read(sql, stored, statement, message):
    with pytest.raises(InvalidInputError, match=message):
        sql(statement)
    assert reference.dataset(stored).version == 1


def test_mistakes_in_what_a_statement_says(sql):
    with pytest.raises(UnsupportedError, match="compares columns of the same name"):
        sql("MERGE INTO t a USING v b ON a.id = b.key WHEN MATCHED THEN DELETE")
    for statement in ("DELETE FROM t WHERE nix = 1", "ALTER TABLE t DROP COLUMN nix", "DROP INDEX nix ON t"):
        with pytest.raises(LanceError, match="nix"):
            sql(statement)


def test_texts_names_and_comments():
    cursor = Cursor("a.`b``c` 'it''s' -- the rest; of the line\n (f(x, y), 2)  ;")
    assert (cursor.name("x"), cursor.text("x")) == ("a.b`c", "it's")
    assert cursor.accept("(")
    assert cursor.expression("x", ",") == "f(x, y)"
    assert cursor.accept(",")
    assert cursor.whole_number("x") == 2
