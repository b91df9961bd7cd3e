"""Calls with expressions of SQL: filters and computed columns."""

from __future__ import annotations

from support.calls.texts import Group, expand

_NUMBERS = ["n", "f", "id", "st.x", "`With Space`", "3", "2.5", "-1", "null", "(n + f)"]
_TEXTS = ["s", "big", "st.y", "'text 1'", "''", "null", "upper(s)"]
_TIMES = ["at", "day", "date '2024-01-05'", "timestamp '2024-01-02 03:00:00'", "null"]
_TESTS = ["n > 3", "flag", "s is null", "f < 5", "not flag", "true", "null"]
_ANY = ["n", "f", "s", "flag", "at", "day", "raw", "st", "li", "vec", "cat", "void", "big", "'x'", "1", "null"]
_TYPES = ["int", "bigint", "double", "string", "boolean", "date", "timestamp", "smallint", "float", "nope", "binary"]

_EXPRESSIONS = [
    *expand("$a $op $b", 90, a=_NUMBERS, b=_NUMBERS, op=["+", "-", "*", "/", "%"]),
    *expand("$f($a)", 60, a=_NUMBERS, f=["abs", "ceil", "floor", "round", "sqrt", "sin", "exp", "ln", "signum",
        "isnan"]),
    *expand("$f($a)", 80, a=_TEXTS, f=["upper", "lower", "length", "trim", "reverse", "character_length", "ascii",
                                       "octet_length", "initcap", "md5", "ltrim"]),
    *expand("$f($a, $b)", 60, a=_TEXTS, b=_TEXTS, f=["concat", "starts_with", "contains", "ends_with", "strpos",
        "nullif"]),
    *expand("substr($a, $i, $n)", 30, a=_TEXTS, i=["1", "0", "-2", "3", "null"], n=["2", "0", "100"]),
    *expand("$f('$part', $t)", 40, f=["date_part", "date_trunc"], part=["year", "month", "day", "hour", "dow",
        "nope"], t=_TIMES),
    *expand("CAST($a AS $t)", 110, a=_ANY, t=_TYPES),
    *expand("CASE WHEN $t THEN $a ELSE $b END", 30, t=_TESTS, a=_NUMBERS, b=_NUMBERS),
    *expand("coalesce($a, $b)", 30, a=_NUMBERS, b=_NUMBERS),
    *expand("$f(li$rest)", f=["array_length", "array_sort", "cardinality", "array_has", "array_to_string",
        "array_sum", "flatten"],
            rest=["", ", 1", ", ','"]),
]  # fmt: skip
_FILTERS = [
    *expand("$a $op $b", 110, a=_NUMBERS, b=_NUMBERS, op=["=", "!=", "<", "<=", ">", ">=", "<>", "=="]),
    *expand("$a $op $b", 60, a=_TEXTS, b=[*_TEXTS, "1"], op=["=", "!=", "<", ">=", "LIKE", "ILIKE", "NOT LIKE"]),
    *expand("$a $op $b", 40, a=_TIMES, b=[*_TIMES, "'2024-01-03'"], op=["=", "<", ">="]),
    *expand("$a $op $b", 50, a=_TESTS, b=_TESTS, op=["AND", "OR"]),
    *expand("$x $how", 70, x=_ANY, how=["IS NULL", "IS NOT NULL", "= NULL", "IS TRUE", "IS NOT FALSE"]),
    *expand("$a $neg IN ($b, $c)", 50, a=[*_NUMBERS, *_TEXTS], b=["1", "2.5", "'text 1'", "null"], c=["7", "'a'"],
        neg=["", "NOT"]),
    *expand("$a BETWEEN $b AND $c", 40, a=_NUMBERS, b=_NUMBERS, c=_NUMBERS),
    *expand("$x = $y", 50, x=_ANY, y=_ANY),
    *expand("NOT ($a)", 10, a=_TESTS),
    *expand("$a $rest", a=["n > 1", "s"], rest=["AND", "AND AND true", ")", "--", "/* x */", "LIMIT 1", "GROUP BY n",
        "COLLATE x", "::int = 1"]),
    *expand("$x", x=["regexp_match(s, '[12]$')", "regexp_like(s, 'T', 'i')", "s ~ 'text'", "s !~ 'text'", "like",
        "count(n) > 1",
                     "n > (SELECT 1)", "EXISTS (SELECT 1)", "row_number() > 1", "st['x'] > 10", "st.deep.z > 1",
                     "li[1] = 0",
                     "array_has(li, 1)", "array_has_any(li, [0, 1])", "array_has_all(li, [0])", "vec[1] > 3", "1 = 1",
                     "'a' = 'a'",
                     "x'00' = raw", "raw = x'0'", '"n" > 3', "`n` > 3", "N > 3", "'n' > 3", "n > 3.0e0", "n > 1e400",
                     "n > 0x1",
                     "n = 99999999999999999999", "day = '2024-13-01'", "at > interval '1 day'", "at > now()",
                     "n IS DISTINCT FROM 1",
                     "n IS NOT DISTINCT FROM null", "n & 1 = 1", "n | 1 = 1", "n ^ 1 = 0", "n << 1 = 2",
                     "n || 'a' = '4a'", "n in (1,)",
                     "s LIKE 'text\\_1'", "s LIKE 'te%' ESCAPE '!'", "s LIKE null", "s like 5", "flag = 1",
                     "flag = 'true'", "flag > false"]),
]  # fmt: skip

GROUPS = [
    Group("computed columns", "main", tuple(f"ds.to_table({{'x': {text!r}}}, limit=20)" for text in _EXPRESSIONS)),
    Group("filters", "main", tuple(f"ds.to_table(['id'], {text!r})" for text in _FILTERS)),
]
