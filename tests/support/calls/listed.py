"""Differences from the reference that are on purpose, or in which the reference fails, with the reason of each."""

from __future__ import annotations

import re
from dataclasses import dataclass

from support.calls.running import Difference


@dataclass(frozen=True)
class Rule:
    """Differences that have one reason.

    A rule for errors names both of them, and one for results both results, or what makes them equal. So another
    difference of the same call is not listed.

    Parameters
    ----------
    reason
        Why they are there.
    kinds
        Kinds of differences, as in `Difference`.
    call, ours, theirs
        Regular expressions that the call and the outcomes contain.
    alike
        For results: a regular expression and its replacement in both results, which are equal then.
    unordered
        For results: True if they are equal as sets of words.
    """

    reason: str
    kinds: str
    call: str = ""
    ours: str = ""
    theirs: str = ""
    alike: tuple[str, str] | None = None
    unordered: bool = False

    def matches(self, difference: Difference) -> bool:
        return (
            difference.kind in self.kinds.split()
            and re.search(self.call, difference.call, re.DOTALL) is not None
            and re.search(self.ours, difference.ours, re.DOTALL) is not None
            and re.search(self.theirs, difference.theirs, re.DOTALL) is not None
            and self._are_alike(*difference.whole)
        )

    def _are_alike(self, ours: str, theirs: str) -> bool:
        if self.alike is not None:
            pattern, replacement = self.alike
            return re.sub(pattern, replacement, ours) == re.sub(pattern, replacement, theirs)
        return not self.unordered or sorted(re.findall(r"\w+", ours)) == sorted(re.findall(r"\w+", theirs))

    @property
    def is_exact(self) -> bool:
        """True if the rule says of both outcomes what they are, or what an error of one of them is."""
        if self.alike is not None or self.unordered:
            return True
        needed = {"accepted": (self.theirs,), "refused": (self.ours, self.call)}
        return all(all(needed.get(kind, (self.ours, self.theirs))) for kind in self.kinds.split())


_ARGUMENTS = [
    Rule(
        "truth values are not numbers here",
        "refused",
        call="True",
        ours=r"(limit|offset|start|num_rows|fragment_id) must be an integer, not bool|not True$|not bool of shape",
    ),
    Rule(
        "numbers that make no sense are refused",
        "refused",
        call=r"= ?0\b|-1|\(0\)|2 \*\* 63|\bdim\b|, 0\)|=dict\(",
        ours=r"must be (at least 1|between 0 and 2\*\*64 - 1|greater than 0|non-negative)"
        r"|row number 9223372036854775808 is",
    ),
    Rule(
        "the reference fails with an accidental error",
        "errors",
        ours="A filter is a string or a pyarrow expression, not (int|list|bytes)",
        theirs="^AttributeError: '(int|list|bytes)' object has no attribute 'get'",
    ),
    Rule(
        "filter() of the reference fails with an accidental error",
        "errors",
        call=r"^ds\.filter\(",
        ours="^UnsupportedError: filter is not supported",
        theirs="^AttributeError: 'NoneType' object has no attribute 'get'",
    ),
    Rule(
        "the reference fails with an accidental error",
        "errors",
        ours="JSON of a fragment|auto cleanup|requires transactions, not int"
        "|cannot be converted to Arrow: The passed mapping",
        theirs=r"^KeyError: ('id'|'interval'|'older_than_seconds'|\"The passed mapping)"
        r"|^AttributeError: 'int' object has no attribute '(get|read_version)'",
    ),
    Rule(
        "the reference fails with an accidental error",
        "errors",
        ours="must be a (FullTextOperator|Occur|FullTextQuery), not"
        "|index_type and metric must be text, not 5|pydantic.BaseModel, not",
        theirs="^AttributeError: .* has no attribute '(value|inner|upper|__fields__)'",
    ),
    Rule(
        "tables without vectors need their dimension",
        "errors",
        call=r"vec_to_table\((\[\]|\{\})",
        ours="there are no vectors to make a table of",
        theirs="^StopIteration",
    ),
    Rule("the reference panics", "accepted", theirs="PanicException|panicked|Task was aborted"),
    Rule(
        "the reference panics",
        "errors",
        ours="A filter is a string or a pyarrow expression",
        theirs="PanicException|Task was aborted",
    ),
    Rule(
        "sequences of all kinds are lists of columns",
        "accepted",
        call=r"\('n',\)",
        theirs="columns must be a list|not strictly",
    ),
    Rule(
        "sequences of all kinds are lists of columns, where the reference reads all columns",
        "results",
        call=r"get_fragment\(\d\)\.to_table\(\('n',\)",
        ours=r"^\{'columns': \"\{'n'",
        theirs=r"^\{'columns': .\{\\*'id",
    ),
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
        "columns of the wrong type are refused, where scans of fragments of the reference read all",
        "refused",
        call=r"get_fragment\(\d\)\.(to_table|scanner|take|head)\(.*('id'|5)",
        ours=r"columns must be a list of names or a mapping of names to expressions, not ('id'|5)",
    ),
    Rule(
        "values of wrong types are refused, where the reference ignores them",
        "refused",
        call=r"Blob|blob|Image|image|uris|Vector\(|schema=5|batch_udf|BatchUDF"
        r"|, 5\b|\(5\)|\(None\)|'query': (5|None)|MatchQuery|PhraseQuery|Sampler\('a'|ZONEMAP",
        ours=r"^(Wrong)?TypeError: (Cannot build a Image(URI)?Array from"
        r"|ZONEMAP index column (st|vec) must be|a UDF must be a function"
        r"|a blob is made of bytes|dim of Vector must be an integer|expected str, bytes or os.PathLike object, not int"
        r"|from_uris takes URIs|query must be text, not (NoneType|int)|schema must be a pyarrow.Schema, not int"
        r"|value_type of Vector must be|rank must be an integer, not str)",
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
    Rule(
        "the reference tells a negative NaN from NaN, and finds no row",
        "results",
        call=r"f = 0\.0 / 0\.0",
        ours=r"nan|'id': \[\d|'vec': \[\[|^'[13]'$",
        theirs=r"^\{'columns': \"\{'(id|vec)': \[\]|^'0'$",
    ),
    Rule(
        "the reference's index leaves out rows that were deleted before",
        "results",
        call=r"^ds\.to_table\(\['id'\], with_row_id=True, "
        r"include_deleted_rows=True, filter='n > 3( and s is not null)?'\)$",
        ours=r"'id': \[1, 2, 4, .*'_rowid': \[1, 2, No",
        theirs=r"'id': \[1, 2, [57], .*'_rowid': \[1, 2, (7|None)",
    ),
    Rule(
        "row offsets may be null in all schemas",
        "results",
        call="_rowoffset",
        alike=("uint64 not null>', [(]'_rowoffset', 'uint64', False", "uint64>', ('_rowoffset', 'uint64', True"),
    ),
    Rule(
        "filters are text or expressions",
        "errors",
        call=r"get_fragment\(\d\)\.(to_table|scanner)",
        ours="A filter is a string or a pyarrow expression",
        theirs=r"Int64\(5\) does not return a boolean|concat requires input",
    ),
    Rule(
        "the schema of the reference has no metadata after some takes",
        "results",
        call="take",
        theirs=r"\]\)*, None\)",
        alike=(r"\{b'k': b'v', b'made': b'here'\}", "None"),
    ),
    Rule("names are not repeated", "refused", call=r"'id', 'id'", ours="Duplicate column name"),
    Rule("names are not repeated", "errors", call=r"'id', 'id'", ours="Duplicate column name", theirs="Error: "),
    Rule("takes without columns have rows", "accepted", call="take", theirs="No data files found"),
    Rule(
        "takes of fragments have expressions",
        "accepted",
        call="get_fragment.*take",
        theirs="'dict' object is not an",
    ),
    Rule(
        "takes of fragments have expressions",
        "errors",
        call="get_fragment.*take",
        ours="No field named 'nope'|FilterError|columns maps names to SQL expressions|row numbers? .* out of range"
        "|row number|read_columns|has no|must",
        theirs="'dict' object is not an",
    ),
    Rule(
        "takes accept any order (guide: Fragments)",
        "accepted",
        call="take",
        theirs="not strictly increasing|must be sorted in ascending",
    ),
    Rule(
        "the order of fields of structs is that of the table",
        "results",
        call=r"take\(.*\['st\.deep', 'st'\]",
        ours=r"'st': \[\{'x': .*'deep': ",
        theirs=r"'st': \[\{'deep': .*'x': ",
    ),
    Rule(
        "columns of the wrong type are found before the rows",
        "errors",
        call="take",
        ours="columns maps names to SQL expressions, not",
        theirs="argument 'columns_with_transform': 'int' object is not an instance of 'str'",
    ),
    Rule(
        "the reference has no physical schema",
        "accepted",
        call="physical_schema",
        theirs="NotImplementedError",
    ),
    Rule(
        "the reference returns one transaction for none",
        "results",
        call=r"^len\(ds\.get_transactions\(0\)\)$",
        ours="^'0'$",
        theirs="^'1'$",
    ),
    Rule(
        "errors of types are found before errors of values",
        "errors",
        call="to_batches.*batch_size=('a'|2.5), batch_readahead=(0|-1)",
        ours="batch_size must be an integer, not (str|float)",
        theirs="batch_readahead must be greater than 0",
    ),
]
_EXPRESSIONS = [
    Rule("constants are computed", "accepted", theirs="Scans must request at least one column"),
    Rule("fractions and integers are computed with each other", "accepted", theirs="Received literal"),
    Rule("more of SQL is known", "accepted", theirs="is not supported SQL in lance|LIKE does not support escape_char"),
    Rule("items of several types are compared as text", "accepted", call=" IN ", theirs="Cannot cast string"),
    Rule("views of text are text", "results", theirs="string_view", alike=("large_string|string_view", "string")),
    Rule(
        "computed columns have no metadata",
        "results",
        call=r"'x': '(coalesce|CAST)\(",
        alike=(r"\{b'(unit|note)': b'[^']*'\}", "None"),
    ),
    Rule(
        "computed columns may be null",
        "results",
        call=r"'x': 'round\(id\)'",
        alike=("double not null>', [(]'x', 'double', False", "double>', ('x', 'double', True"),
    ),
    Rule("positions in large texts are int64", "results", call="strpos", ours="int64", alike=("int64", "int32")),
    Rule(
        "values of these types are not converted to each other",
        "refused",
        call="to_table",
        ours="Cannot compare|Unsupported CAST from list",
    ),
    Rule(
        "other types are compared after a CAST only",
        "refused",
        call="to_table",
        ours="Wrong literal for the type|are not comparable",
    ),
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
    Rule(
        "text is not data",
        "errors",
        call="'text'",
        ours="Unknown data type <class 'str'>",
        theirs="Must provide schema to write dataset|Error: ",
    ),
    Rule(
        "a number is not a path",
        "errors",
        call=r"^L\.LanceDataset\.drop\(5\)$",
        ours="expected str, bytes or os.PathLike object, not int",
        theirs="^OSError: Not found: .*/5,",
    ),
    Rule(
        "results of functions are checked like input",
        "errors",
        call=r"add_columns\(lambda",
        ours="a UDF must return a|read_columns is empty",
        theirs="TypeError: transforms must be",
    ),
    Rule(
        "a frame of pandas leaves no metadata in the schema",
        "results",
        call="to_pandas",
        alike=(r"""\{b\W*pandas.*?"pandas_version": "[\d.]+"\W*\}|None|[\\'"]""", ""),
    ),
    Rule(
        "dataset() takes a version of a branch (guide: Tags and branches)",
        "accepted",
        call=r"L\.dataset",
        theirs="must be an integer or a string",
    ),
    Rule(
        "versions that branches need are kept (guide: Cleanup)",
        "results",
        call="cleanup_old_versions.*old_versions$",
        ours=r"^\(\"'0'\"",
        theirs=r"^\(\"'1'\"",
        alike=(r"^\(\"'[01]'\"", ""),
    ),
    Rule(
        "a change of version 0 is compared with all that followed",
        "refused",
        call="read_version=0",
        ours="CommitConflictError",
    ),
    Rule("a detached version has a random number", "results", call="detached=True", alike=(r"\b\d{17,}\b", "N")),
    Rule(
        "files are looked for before arguments of the dataset are checked",
        "errors",
        call=r"^L\.write_dataset\(small\(\), path, ",
        ours="^AlreadyExistsError",
        theirs="Error: ",
    ),
    Rule(
        "columns are those of the schema that is given (guide: Schemas)",
        "refused",
        call="small.*schema|schema=",
        ours="SchemaError: the data does not have the columns of the schema: missing=",
    ),
    Rule(
        "columns have the order of the schema that is given (guide: Schemas)",
        "results",
        call=r"select\(\['vec', 'li', 'st', 's', 'f', 'n', 'id'\]\), tmp \+ '/new', small\(\)\.schema",
        ours=r"1, 1, \['id', 'n', 'f', 's', 'st', 'li', 'vec'\]",
        theirs=r"1, 1, \['vec', 'li', 'st', 's', 'f', 'n', 'id'\]",
        unordered=True,
    ),
    Rule(
        "modes and locations are checked",
        "refused",
        call="mode=None|write_dataset",
        ours="Invalid mode None|is not a location of a dataset",
    ),
    Rule(
        "deleting nothing keeps the deletion file",
        "results",
        call=r"^ds\.get_fragment\(0\)\.delete_rows\(\[\]\)$",
        ours="'read_version': '2'",
        theirs="'read_version': '3'",
        alike=("'read_version': '[23]'", ""),
    ),
]
_SEARCHING = [
    Rule("rows of almost equal distances change places", "results", call="'k': 500", unordered=True),
    Rule("some fragments can be searched", "accepted", theirs="unexpected keyword argument 'fragments'"),
    Rule(
        "some fragments can be searched",
        "errors",
        ours="search of some fragments is not supported for fragment scan without prefilter=True",
        theirs="unexpected keyword argument 'fragments'",
    ),
    Rule(
        "an empty query has no dimension",
        "errors",
        call=r"'q': \[\]",
        ours="Query vectors must be an array",
        theirs="^IndexError: list index out of range",
    ),
    Rule(
        "queries have texts of their own",
        "results",
        call=r"^repr\(query\.",
        ours=r"^.MatchQuery\(query='",
        theirs=r"^'<lance\.query\.MatchQuery object at 0x\w+>'$",
    ),
    Rule(
        "schemas have texts of their own",
        "results",
        call=r"^repr\(schema\.LanceSchema",
        ours=r"^.LanceSchema\(fields=\[",
        theirs="^'Schema { fields: ",
    ),
    Rule(
        "queries of texts are checked in another order",
        "errors",
        call="MultiMatchQuery|full_text_query=\\[\\]",
        ours="number of boosts must match|query must be text, not list",
        theirs="argument 'boosts'|No field named _score",
    ),
    Rule(
        "the columns of a query are those of the query",
        "refused",
        call="MatchQuery",
        ours="are part of the MatchQuery",
    ),
    Rule(
        "models have more attributes",
        "accepted",
        call=r"get_ivf_model\('vec_idx'\)\.num_partitions",
        theirs="no attribute 'num_partitions'",
    ),
    Rule(
        "subvectors of kinds that have none are ignored",
        "accepted",
        call=r"create_index\('vec', '(IVF_HNSW_FLAT|IVF_FLAT|ivf_flat)', num_sub_vectors=3\)",
        theirs=r"dimension \(2\) must be divisible by num_sub_vectors \(3\)",
    ),
    Rule(
        "the kind of an index has a default",
        "accepted",
        call=r"create_index\('vec', None, ",
        theirs="'NoneType' object has no attribute 'upper'",
    ),
    Rule(
        "the metric of an index has a default",
        "accepted",
        call=r"create_index\('vec', .*metric=None\)",
        theirs="Metric None not supported",
    ),
    Rule(
        "no subvectors are an error of the argument",
        "errors",
        call="create_index.*num_sub_vectors=0",
        ours="num_sub_vectors must be positive, not 0",
        theirs="ZeroDivisionError",
    ),
    Rule(
        "without columns all indexed columns are searched",
        "accepted",
        call="'columns': \\[\\]",
        theirs="unless an INVERTED index has been created",
    ),
]
_MODULES = [
    Rule("rows may be given as arrays", "accepted", call="take_rows", theirs="Int64Scalar"),
    Rule(
        "files without rows have the schema of their empty batches",
        "accepted",
        call="LanceFileWriter",
        theirs="No schema provided",
    ),
    Rule(
        "files without schema are refused before their metadata",
        "errors",
        call="add_schema_metadata",
        ours="no schema was given and no data written",
        theirs="TypeError: argument 'key'",
    ),
    Rule("the base path of a deletion file may be left out", "accepted", call="DeletionFile", theirs="'base_id'"),
    Rule(
        "the base path of a deletion file may be left out",
        "errors",
        call="DeletionFile.*'nope'",
        ours="file_type must be either",
        theirs="'base_id'",
    ),
    Rule(
        "sets are not compared with other values, so that these decide (== is False)",
        "results",
        call=r"^bitmap\.Bitmap\(\[1, 2, 5\]\)\.__eq__\((\[\]|5|9|None|\[1, 2, 3\])\)$",
        ours=r"^\{\}$",
        theirs="^'False'$",
    ),
    Rule("times are read without pandas", "accepted", call="sanitize_ts", theirs="Try installing Pandas"),
    Rule(
        "microseconds are exact",
        "results",
        call=r"timedelta\.max",
        ours="^'86399999999999999999'$",
        theirs="^'86400000000000000000'$",
    ),
    Rule("nulls of bfloat16 are kept (guide: Arrow types)", "accepted", call=r"arrow\.cast", theirs="zero_copy_only"),
    Rule(
        "ranks are below the number of processes (guide: Samplers)",
        "refused",
        call="rank|Sampler",
        ours="rank must be below world_size",
    ),
    Rule(
        "text is made of fragments of an open dataset",
        "accepted",
        call="format_fragment",
        theirs="'LanceFragment' object has no attribute 'files'",
    ),
    Rule(
        "samples are in the order of the rows",
        "results",
        call=r"^sampler\.reservoir_sampling\((range\(2\), 5|iter\(range\(3\)\), 3)\)$",
        unordered=True,
    ),
    Rule("samplers filter, and draw nothing", "accepted", call=r"sampler\.", theirs="Can't yet run filter|high <= 0"),
    Rule(
        "results of compactions can be made without a compaction",
        "accepted",
        call=r"optimize\.Compaction",
        theirs="cannot create 'lance.optimize.Compaction",
    ),
    Rule(
        "a range of versions is given in one way (guide: Change data)",
        "refused",
        call=r"delta\(1, begin_version=1\)",
        ours="give compared_against or",
    ),
    Rule(
        "nothing changed since a version to come",
        "accepted",
        call=r"^len\(ds\.delta\(99\)",
        theirs="Can not find version 4",
    ),
]
RULES = [*_ARGUMENTS, *_READING, *_EXPRESSIONS, *_CHANGES, *_SEARCHING, *_MODULES]


def reason_of(difference: Difference) -> str | None:
    """Return the reason of a difference, or None if it is not listed."""
    return next((rule.reason for rule in RULES if rule.matches(difference)), None)
