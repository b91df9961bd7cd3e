"""Functions that compute new columns batch by batch, and checkpoint files that keep their results."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from lance_dataset.changes.write.input import ReaderLike, as_batches
from lance_dataset.errors import CorruptFileError, InvalidInputError, StorageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BatchUDF",
    "BatchUDFCheckpoint",
    "ColumnValues",
    "NewColumns",
    "batch_udf",
    "data_batches",
    "expressions",
    "failed_function",
]

#: Result of a function of a batch: the new columns for the same rows.
BatchResult: TypeAlias = "pa.RecordBatch | pa.Table | pd.DataFrame"
#: Takes a batch and returns the new columns for the same rows, as a batch or a DataFrame.
BatchFunction: TypeAlias = "Callable[[pa.RecordBatch], BatchResult]"
#: SQL expressions by column, or a function: values of new columns.
ColumnValues: TypeAlias = "Mapping[str, str] | BatchUDF | BatchFunction"
#: New columns in any form: also as data, or as fields of columns that are null in all rows.
NewColumns: TypeAlias = "ColumnValues | ReaderLike | pa.Field | Sequence[pa.Field] | pa.Schema"


#: Seconds to wait for other users of a checkpoint.
_PATIENCE = 5.0

# The table `fragments` is that of the reference, so either library can continue a run of the other one. The reference
# pickles batches, and unpickling can run arbitrary code. Therefore batches are kept in a table of their own.
_TABLES = """
CREATE TABLE IF NOT EXISTS fragments (fragment_id INT, data BLOB);
CREATE TABLE IF NOT EXISTS results (fragment_id INT, batch_index INT, source TEXT, result BLOB);
"""


class BatchUDFCheckpoint:
    """File that keeps results of a `BatchUDF`, so that an interrupted run continues where it stopped.

    It is a SQLite database, written after each batch.

    Parameters
    ----------
    path
        Path of the file, which is created if it does not exist.

    Raises
    ------
    CorruptFileError
        The file is not a SQLite database.
    StorageError
        The file cannot be opened, or is in use.
    TypeError
        `path` is not a path.
    """

    class BatchInfo(NamedTuple):
        """Batch that a result belongs to.

        Attributes
        ----------
        fragment_id, batch_index
            Fragment, and number of the batch in it.
        source
            Checksum of the data that the batch was made from. A result is returned only for the same checksum.
        """

        fragment_id: int
        batch_index: int
        source: str = ""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        if not isinstance(self.path, str):
            raise TypeError(f"checkpoint_file must be a path, not {type(path).__name__}")
        with self._connected() as connection:
            connection.executescript(_TABLES)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open a connection; its changes are committed if the block succeeds."""
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=_PATIENCE)
            yield connection
            connection.commit()
        except sqlite3.OperationalError as error:
            raise StorageError(f"checkpoint file {self.path!r} cannot be used: {error}{_advice(error)}") from error
        except sqlite3.DatabaseError as error:
            raise CorruptFileError(
                f"checkpoint file {self.path!r} cannot be used: {error}; if nothing else uses it, remove it to start "
                "from the beginning"
            ) from error
        finally:
            if connection is not None:
                connection.close()

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """Return the result of a batch, or None if it is not known."""
        with self._connected() as connection:
            found = connection.execute(
                "SELECT result FROM results WHERE fragment_id = ? AND batch_index = ? AND source = ?", info
            ).fetchone()
        return None if found is None else _decoded(found[0], self.path)

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Keep the result of a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        data = sqlite3.Binary(sink.getvalue().to_pybytes())
        with self._connected() as connection:
            connection.execute("DELETE FROM results WHERE fragment_id = ? AND batch_index = ?", info[:2])
            connection.execute("INSERT INTO results VALUES (?, ?, ?, ?)", (*info, data))

    def get_fragment(self, fragment_id: int) -> str | None:
        """Return the JSON of a fragment whose new columns are written, or None if they are not."""
        with self._connected() as connection:
            found = connection.execute("SELECT data FROM fragments WHERE fragment_id = ?", (fragment_id,)).fetchone()
        if found is None:
            return None
        return found[0].decode(errors="replace") if isinstance(found[0], bytes) else str(found[0])

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Keep the JSON of a fragment whose new columns are written, and drop the results of its batches."""
        with self._connected() as connection:
            connection.execute("DELETE FROM results WHERE fragment_id = ?", (fragment_id,))
            connection.execute("DELETE FROM fragments WHERE fragment_id = ?", (fragment_id,))
            connection.execute("INSERT INTO fragments VALUES (?, ?)", (fragment_id, fragment))

    def cleanup(self) -> None:
        """Remove the file."""
        Path(self.path).unlink(missing_ok=True)


def _advice(error: sqlite3.OperationalError) -> str:
    """Return advice for a checkpoint that cannot be used although it is not damaged: the end of a message."""
    text = str(error)
    if "locked" in text or "busy" in text:
        return "; another process or thread is using it: wait for it, or give each its own file"
    if "open" in text or "readonly" in text:
        return "; its folder must exist, and both must be writable"
    if text.startswith("no such"):
        return "; it is the database of another program: use another path"
    return ""


def _decoded(data: Any, path: str) -> pa.RecordBatch:
    try:
        batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, TypeError, ValueError, OSError, StopIteration) as error:
        raise CorruptFileError(
            f"checkpoint file {path!r} holds a damaged result: {error}; remove it to start from the beginning"
        ) from error
    return batch


class BatchUDF:
    """Function that computes new columns, for `LanceDataset.add_columns`. Made by `batch_udf`.

    Parameters
    ----------
    func
        Takes a record batch and returns the new columns only, for the same number of rows, as a record batch or a
        pandas DataFrame.
    output_schema
        Schema that it returns; None for the schema of its first result.
    checkpoint_file
        File that keeps results until all are committed, see `batch_udf`.

    Raises
    ------
    TypeError
        `func` is not callable, `output_schema` is not a schema, or `checkpoint_file` is not a path.
    """

    def __init__(
        self,
        func: BatchFunction,
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if not callable(func):
            raise TypeError(f"a UDF must be a function of a record batch, not {type(func).__name__}")
        if output_schema is not None and not isinstance(output_schema, pa.Schema):
            raise TypeError(f"output_schema must be a pyarrow.Schema, not {type(output_schema).__name__}")
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> BatchResult:
        """Call the function and return its result unchanged."""
        return self.func(batch)

    def result(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Call the function and return its result as a record batch, of the output schema if there is one.

        Raises
        ------
        InvalidInputError
            The result is not a table, or has other columns or another number of rows.
        """
        made = _as_batch(self.func(batch), self.output_schema)
        if self.output_schema is not None and not made.schema.equals(self.output_schema):
            raise InvalidInputError(
                f"Output schema of function does not match the expected schema. Expected:\n{self.output_schema}\n"
                f"Got:\n{made.schema}"
            )
        if made.num_rows != batch.num_rows:
            raise InvalidInputError(f"the UDF got {batch.num_rows} rows and returned {made.num_rows}")
        return made


def _as_batch(made: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    if isinstance(made, pa.RecordBatch):
        return made
    if isinstance(made, pa.Table):
        arrays = [column.combine_chunks() for column in made.columns]
        plain = [array.chunk(0) if isinstance(array, pa.ChunkedArray) else array for array in arrays]
        return pa.RecordBatch.from_arrays(plain, schema=made.schema)
    if type(made).__name__ == "DataFrame" and type(made).__module__.partition(".")[0] == "pandas":
        wanted = schema if schema is not None and sorted(map(str, made.columns)) == sorted(schema.names) else None
        try:
            batch = pa.RecordBatch.from_pandas(made, schema=wanted, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"the DataFrame that the UDF returned cannot be converted to Arrow: {error}"
            ) from error
        return batch.replace_schema_metadata(None if schema is None else schema.metadata)
    raise InvalidInputError(f"a UDF must return a pyarrow.RecordBatch or a pandas DataFrame, not {type(made).__name__}")


def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[BatchFunction], BatchUDF]:
    """Decorate a function with which `LanceDataset.add_columns` computes new columns.

    The function takes a record batch of live rows, which it should not change, and returns the new columns for them.

    Parameters
    ----------
    output_schema
        Schema that the function returns; None for the schema of its first result.
    checkpoint_file
        File that keeps results until all columns are committed. If the process dies or the function fails, another call
        of `add_columns` with the same file calls the function for the remaining batches only. Results are used only for
        the same rows of the same table, read in the same way. Remove the file if the function itself changes. The file
        may grow to the size of a data file, and is removed at the end.

    Returns
    -------
    callable
        Decorator that turns a function into a `BatchUDF`.
    """

    def decorated(func: BatchFunction) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return decorated


def expressions(given: Mapping[Any, Any]) -> dict[str, str]:
    """Check new columns that are given as SQL expressions; raise TypeError unless all names and values are text."""
    for name, text in given.items():
        if not isinstance(text, str):
            raise TypeError(f"Column expressions must be a string. Got {type(text)} for column {name!r}")
        if not isinstance(name, str):
            raise TypeError(f"Column names must be a string. Got {type(name)}")
    return dict(given)


def failed_function(function: object, error: Exception) -> TypeError:
    """Return the error for a function that fails before its output schema is known."""
    return TypeError(
        "transforms must be a BatchUDF, dict, map function, or ReaderLike value.  Received "
        f"{type(function)}, which is callable, but gave an error when called with a batch of data: "
        f"{type(error).__name__}: {error}"
    )


def data_batches(data: ReaderLike, schema: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches of new columns given as data; raise TypeError for an unsupported kind."""
    try:
        return as_batches(data, schema)
    except TypeError as error:
        raise TypeError(
            "transforms must be a BatchUDF, dict, map function, or ReaderLike value.  Received "
            f"{type(data)}.  Could not coerce to a reader: {error}"
        ) from error
