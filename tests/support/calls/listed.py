"""Differences from the reference that are on purpose, or in which the reference fails, with the reason of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from support.calls.running import Difference


@dataclass(frozen=True)
class Rule:
    """Differences that have one reason.

    Parameters
    ----------
    reason
        Why they are there.
    kinds
        Kinds of differences, as in `Difference`.
    call, ours, theirs
        Regular expressions that the call and the outcomes contain.
    """

    reason: str
    kinds: str
    call: str = ""
    ours: str = ""
    theirs: str = ""

    def matches(self, difference: Difference) -> bool:
        return (
            difference.kind in self.kinds.split()
            and re.search(self.call, difference.call, re.DOTALL) is not None
            and re.search(self.ours, difference.ours, re.DOTALL) is not None
            and re.search(self.theirs, difference.theirs, re.DOTALL) is not None
        )


_ARGUMENTS = [
    Rule("truth values are not numbers here", "refused errors", ours=r"not (bool|True)\b"),
    Rule(
        "numbers that make no sense are refused",
        "refused",
        ours="OutOfRangeError|RowIndexError|must be (at least|between|greater)",
    ),
    Rule(
        "the reference fails with an accidental error",
        "errors",
        theirs="^(Attribute|UnboundLocal|Assertion|Key)Error|^StopIteration",
    ),
    Rule("the reference panics", "accepted errors", theirs="PanicException|panicked|Task was aborted"),
    Rule("sequences of all kinds are lists of columns", "accepted results", call=r"\('n',\)"),
    Rule("a version and a time are not given together", "refused", call="asof", ours="give either version or asof"),
    Rule("values of storage options may be numbers", "accepted", call="storage_options", theirs="TypeError"),
    Rule(
        "versions that cannot exist are versions not found",
        "errors",
        ours="^VersionNotFoundError",
        theirs="OverflowError",
    ),
    Rule(
        "options that are true or false may be of any type",
        "accepted",
        theirs="is not an instance of 'bool'|to 'PyBool'",
    ),
    Rule(
        "wrong types are refused, where the reference takes or ignores them",
        "refused",
        ours="^(WrongTypeError|TypeError)",
    ),
]
_READING = [
    Rule(
        "the reference ignores what follows a filter",
        "refused",
        call=r";|LIMIT 1|GROUP BY|\)'|x'0'",
        ours="FilterError",
    ),
    Rule(
        "structs and lists have no order (guide: Filters)",
        "refused",
        call="order_by=.*'vec'",
        ours="no order to sort by",
    ),
    Rule(
        "the reference orders by other columns only with row ids",
        "accepted",
        call="order_by",
        theirs="TakeExec requires",
    ),
    Rule("the reference tells a negative NaN from NaN", "results", call=r"0\.0 / 0\.0"),
    Rule("the reference's index leaves out rows that were deleted before", "results", call="include_deleted_rows=True"),
    Rule("row offsets may be null in all schemas", "results", call="_rowoffset", theirs="not null"),
    Rule("filters are text or expressions", "errors", ours="A filter is a string or a pyarrow expression"),
    Rule(
        "the schema of the reference has no metadata after some takes", "results", call="take", theirs=r"\]\)*, None\)"
    ),
    Rule("names are not repeated", "refused errors", call=r"'id', 'id'", ours="Duplicate column name"),
    Rule("takes without columns have rows", "accepted", call="take", theirs="No data files found"),
    Rule(
        "takes of fragments have expressions",
        "accepted errors",
        call="get_fragment.*take",
        theirs="'dict' object is not an",
    ),
    Rule(
        "takes accept any order (guide: Fragments)",
        "accepted",
        theirs="not strictly increasing|must be sorted in ascending",
    ),
    Rule("the order of fields of structs is that of the table", "results", call=r"\['st\.deep', 'st'\]"),
    Rule(
        "columns of the wrong type are found before the rows",
        "errors",
        call="take",
        ours="columns maps|No field named|FilterError|RowIndexError",
    ),
    Rule(
        "the reference has no physical schema",
        "accepted results",
        call="physical_schema|get_fragment",
        theirs="NotImplementedError|'physical_schema': 'error'",
    ),
    Rule("the reference returns one transaction for none", "results", call=r"get_transactions\(0\)"),
    Rule(
        "errors of types are found before errors of values, and the other way around",
        "errors",
        call="open_session|slice|batch_size=.*batch_readahead=",
    ),
]
_EXPRESSIONS = [
    Rule("constants are computed", "accepted", theirs="Scans must request at least one column"),
    Rule("fractions and integers are computed with each other", "accepted", theirs="Received literal"),
    Rule("more of SQL is known", "accepted", theirs="is not supported SQL in lance|LIKE does not support escape_char"),
    Rule("items of several types are compared as text", "accepted", call=" IN ", theirs="Cannot cast string"),
    Rule("views of text are text", "results", theirs="string_view"),
    Rule("computed columns have no metadata, and may be null", "results", call=r"'(coalesce|round|CAST)"),
    Rule("positions in large texts are int64", "results", call="strpos", ours="int64"),
    Rule(
        "values of these types are not converted to each other",
        "refused",
        ours="Cannot compare|Unsupported CAST from list",
    ),
    Rule("other types are compared after a CAST only", "refused", ours="Wrong literal for the type|are not comparable"),
    Rule("dates are cast to all integers", "accepted", theirs="Unsupported CAST from Date32"),
]
_CHANGES = [
    Rule(
        "rows as dictionaries get the types of the table", "accepted", call=r"to_pylist\(\)", theirs="should have type"
    ),
    Rule(
        "integers are cast to the type of the column",
        "accepted",
        call=r"pa\.int32\(\)",
        theirs="should have type int64",
    ),
    Rule("text is not data", "errors", call="'text'", ours="Unknown data type"),
    Rule("a number is not a path", "errors", call=r"drop\(5\)"),
    Rule(
        "results of functions are checked like input",
        "errors",
        call=r"add_columns\(lambda",
        theirs="TypeError: transforms must be",
    ),
    Rule("a frame of pandas leaves no metadata in the schema", "results", call="to_pandas"),
    Rule(
        "dataset() takes a version of a branch (guide: Tags and branches)",
        "accepted",
        call=r"L\.dataset",
        theirs="must be an integer or a string",
    ),
    Rule("versions that branches need are kept (guide: Cleanup)", "results", call="cleanup_old_versions"),
    Rule(
        "a change of version 0 is compared with all that followed",
        "refused",
        call="read_version=0",
        ours="CommitConflictError",
    ),
    Rule("a detached version has a random number", "results", call="detached=True"),
    Rule("files are looked for before arguments of the dataset are checked", "errors", ours="AlreadyExistsError"),
    Rule(
        "columns and their types are those of the schema that is given (guide: Schemas)",
        "refused results",
        call="small.*schema|schema=",
        ours="SchemaError|dataset",
    ),
    Rule("modes and locations are checked", "refused", ours="Invalid mode None|is not a location of a dataset"),
    Rule("fragments without rows are refused first", "errors", ours="a fragment needs at least one row"),
    Rule("deleting nothing keeps the deletion file", "results", call=r"delete_rows\(\[\]\)"),
]
_SEARCHING = [
    Rule("sums of equal distances end in other digits", "results", call="'k': 500"),
    Rule("some fragments can be searched", "accepted errors", theirs="unexpected keyword argument 'fragments'"),
    Rule("an empty query has no dimension", "errors", ours="Query vectors must be an array"),
    Rule("queries have texts of their own", "results", call=r"^repr\((query|schema)\."),
    Rule(
        "queries of texts are checked in another order",
        "errors",
        call="full_text_query",
        ours="InvalidInputError|TypeError",
    ),
    Rule("the columns of a query are those of the query", "refused", ours="are part of the MatchQuery"),
    Rule("models have more attributes", "accepted", call="get_ivf_model"),
    Rule(
        "options that the kind of index does not use are ignored",
        "accepted",
        call="create_index",
        theirs="num_sub_vectors|NoneType|Metric None",
    ),
    Rule("indices of other kinds are refused by their kind", "errors", call="create_index"),
    Rule("without columns all indexed columns are searched", "accepted", call="'columns': \\[\\]"),
]
_MODULES = [
    Rule("rows may be given as arrays", "accepted", call="take_rows", theirs="Int64Scalar"),
    Rule(
        "files without rows have the schema of their empty batches",
        "accepted errors",
        call="LanceFileWriter",
        theirs="No schema provided|TypeError: argument 'key'",
    ),
    Rule("an empty sequence has the bytes of an empty message, or none", "results", call=r"RowIdSequence\(\[\]\)"),
    Rule(
        "the base path of a deletion file may be left out", "accepted errors", call="DeletionFile", theirs="'base_id'"
    ),
    Rule("sets are only equal to sets", "results", call=r"Bitmap.*__eq__"),
    Rule("times are read without pandas", "accepted", call="sanitize_ts", theirs="Try installing Pandas"),
    Rule("microseconds are exact", "results", call=r"timedelta\.max"),
    Rule("tables without vectors are refused", "refused errors", call="vec_to_table", ours="there are no vectors"),
    Rule("nulls of bfloat16 are kept (guide: Arrow types)", "accepted", call=r"arrow\.cast", theirs="zero_copy_only"),
    Rule("ranks are below the number of processes (guide: Samplers)", "refused", ours="rank must be below world_size"),
    Rule("text is made of fragments of an open dataset", "accepted", call="format_fragment"),
    Rule("samples are in the order of the rows", "results", call="reservoir_sampling"),
    Rule("samplers filter, and draw nothing", "accepted", call=r"sampler\.", theirs="Can't yet run filter|high <= 0"),
    Rule("results of compactions can be made without a compaction", "accepted", call=r"optimize\.Compaction"),
    Rule(
        "a range of versions is given in one way (guide: Change data)",
        "refused",
        call=r"delta",
        ours="give compared_against or",
    ),
    Rule("nothing changed since a version to come", "accepted", call=r"delta\(99\)"),
]
RULES = [*_ARGUMENTS, *_READING, *_EXPRESSIONS, *_CHANGES, *_SEARCHING, *_MODULES]


def reason_of(difference: Difference) -> str | None:
    """Return the reason of a difference, or None if it is not listed."""
    return next((rule.reason for rule in RULES if rule.matches(difference)), None)
