"""A small table class in the manner of LanceDB: models describe rows, queries are built step by step."""

import sys
from collections.abc import Iterable

import lance
import pyarrow as pa
from lance.pydantic import Vector, pydantic_to_schema
from pydantic import BaseModel


class Note(BaseModel):
    id: int
    title: str
    stars: float | None = None
    tags: list[str]
    vector: Vector(3)


class Query:
    """Query of a table that is run when its rows are asked for."""

    def __init__(self, dataset: lance.LanceDataset, vector: list[float] | None) -> None:
        self._dataset, self._vector = dataset, vector
        self._options: dict[str, object] = {}

    def where(self, text: str) -> "Query":
        self._options |= {"filter": text, "prefilter": True}
        return self

    def select(self, columns: list[str]) -> "Query":
        self._options["columns"] = columns
        return self

    def limit(self, count: int) -> "Query":
        self._options["limit"] = count
        return self

    def to_list(self) -> list[dict[str, object]]:
        options = dict(self._options)
        if self._vector is not None:
            options["nearest"] = {"column": "vector", "q": self._vector, "k": options.pop("limit", 3)}
        return self._dataset.to_table(**options).to_pylist()


class Table:
    """Table of models."""

    def __init__(self, uri: str, model: type[BaseModel]) -> None:
        self._schema = pydantic_to_schema(model)
        self._dataset = lance.write_dataset([], uri, self._schema)

    def add(self, notes: Iterable[BaseModel]) -> int:
        rows = pa.Table.from_pylist([note.model_dump() for note in notes], schema=self._schema)
        self._dataset.insert(rows)
        return self._dataset.count_rows()

    def search(self, vector: list[float] | None = None) -> Query:
        return Query(self._dataset, vector)

    def upsert(self, notes: Iterable[BaseModel]) -> dict[str, int]:
        rows = pa.Table.from_pylist([note.model_dump() for note in notes], schema=self._schema)
        done = self._dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
        return {key: done[key] for key in ("num_inserted_rows", "num_updated_rows")}

    def delete(self, where: str) -> int:
        self._dataset.delete(where)
        return self._dataset.count_rows()


def note(number: int, stars: float | None = None) -> Note:
    return Note(
        id=number, title=f"note {number}", stars=stars, tags=["odd"] * (number % 2), vector=[number, 1, -number]
    )


table = Table(sys.argv[1] + "/notes.lance", Note)
print([(field.name, str(field.type), field.nullable) for field in table._schema])
print(table.add(note(i, i / 2) for i in range(8)), table.add([note(20)]))
print(table.search([3.2, 1, -3.2]).select(["id", "title"]).limit(2).to_list())
print(table.search([3.2, 1, -3.2]).where("array_has(tags, 'odd')").select(["id"]).to_list())
print(table.search().where("stars > 2").limit(3).select(["id", "stars"]).to_list())
print(table.upsert([note(3, 9.0), note(30)]), table.search().where("id IN (3, 30)").select(["id", "stars"]).to_list())
print(table.delete("stars IS NULL"), table.search().where("id = 3").to_list())
try:
    table.add([Note(id=1, title="x", tags=[], vector=[1, 2])])
except ValueError as error:
    print("refused", type(error).__name__)
print([Note(**row).title for row in table.search([0, 1, 0]).select(list(Note.model_fields)).limit(2).to_list()])
