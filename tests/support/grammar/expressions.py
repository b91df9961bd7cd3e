"""Random expressions of every type over the table of `filter_table`.

Expressions that the reference computes wrongly or in another type are left out; the corpus test lists them.
"""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["DuckGrammar", "ExpressionGrammar"]

INTEGERS = ["i8", "i16", "i", "big", "u8", "u32", "u64", "id", "st.x", "`with space`", "CamelCase", "`order`"]
TEXTS = ["s", "ls", "st.`y-z`"]
WORDS = ["'a'", "''", "'A'", "'Éa_b%'", "'héllo wörld'", "'zz'", "'l'", "' '", "'b\\c'", "'日'"]
MOMENTS = ["ts", "tms", "tns", "tz", "ny"]
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"]
PARTS = [*UNITS, "doy", "dow", "isodow", "isoyear", "millisecond", "microsecond", "nanosecond", "epoch"]
ARROW_TYPES = ["Int64", "Utf8", "Float64", "Timestamp(ns)", "LargeUtf8", "Decimal128(20, 3)", "Duration(ms)"]
COMPARE = ["=", "!=", "<>", "<", "<=", ">", ">="]


class ExpressionGrammar:
    """Random expressions that the reference also computes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.kinds: list[Callable[[int], str]] = [
            *(self.integer, self.integer, self.real, self.text, self.text, self.boolean, self.boolean),
            *(self.date, self.moment, self.decimal, self.list, self.cast),
        ]

    def pick(self, *choices):
        return self.random.choice(choices)

    def expression(self, depth: int = 2) -> str:
        """Return an expression of any type."""
        return self.pick(*self.kinds)(depth)

    def number(self, low: int = 0, high: int = 9) -> int:
        return self.random.randint(low, high)

    def integer(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(*INTEGERS)
        lower = depth - 1
        return self.pick(
            lambda: f"({self.integer(lower)} {self.pick(*'+-*')} {self.integer(lower)})",
            lambda: f"({self.integer(lower)} {self.pick(*'/%')} {self.number(1)})",
            lambda: f"({self.integer(lower)} {self.pick('<<', '>>')} {self.number(0, 9)})",
            lambda: f"(-{self.pick('i', 'i8', 'i16', 'big')})",
            lambda: f"abs({self.pick('i', 'u8', 'id', 'st.x')})",
            lambda: f"coalesce({self.integer(lower)}, {self.number()})",
            lambda: f"{self.pick('nvl', 'ifnull')}({self.pick('i', 'i8')}, {self.pick('i16', 'u8', 3)})",
            lambda: f"nvl2({self.pick('i8', 'u8')}, {self.number()}, {self.integer(0)})",
            lambda: f"nullif({self.pick('i', 'i8', 'u8')}, {self.pick(0, 1, 5, 'i16')})",
            lambda: f"{self.pick('greatest', 'least')}({self.integer(0)}, {self.integer(0)}, {self.number()})",
            lambda: f"{self.pick('length', 'ascii', 'octet_length', 'bit_length')}({self.pick('upper(s)', *TEXTS)})",
            lambda: f"{self.pick('strpos', 'instr')}({self.pick('s', 'st.`y-z`')}, {self.pick(*WORDS)})",
            lambda: f"levenshtein({self.pick('s', 'lower(s)')}, {self.pick('s', *WORDS)})",
            lambda: f"regexp_count({self.text(0)}, {self.pattern()})",
            lambda: f"regexp_instr({self.text(0)}, {self.pattern()}, {self.number(1, 3)})",
            lambda: f"find_in_set({self.text(0)}, 'a,b,,A')",
            lambda: f"date_part('{self.pick(*PARTS)}', {self.pick('d', *MOMENTS)})",
            lambda: f"{self.pick('gcd', 'lcm')}({self.pick('i', 'i8', 'u8')}, {self.number()})",
            lambda: f"to_unixtime({self.pick('d', *MOMENTS)})",
            lambda: f"array_length({self.pick('li', 'words')})",
            lambda: f"li[{self.pick(0, 1, 2, 3, -1)}]",
            lambda: (
                f"CAST({self.pick('f', 'dec', 'b', 's')} AS {self.pick('BIGINT', 'INT')})"
                if self.number() > 8
                else f"TRY_CAST({self.pick('f', 'dec', 'b', 's', 'big')} AS {self.pick('BIGINT', 'TINYINT')})"
            ),
            lambda: f"{self.integer(0)}",
        )()

    def real(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("f", "f4", "st.`in`.w")
        lower = depth - 1
        one = self.pick(
            *("sin", "cos", "atan", "sqrt", "cbrt", "exp", "ln", "log2", "log10", "tanh", "degrees", "radians"),
            *("signum", "asinh", "sinh", "cosh", "tan", "asin", "acos", "acosh", "atanh", "log", "trunc", "round"),
        )
        return self.pick(
            lambda: f"{one}({self.pick(self.real(0), 'i8', 'dec')})",
            lambda: f"({self.real(lower)} {self.pick(*'+-*/%')} {self.real(lower)})",
            lambda: f"({self.pick('f', 'st.`in`.w')} {self.pick(*'+-*/')} {self.pick('0.5', '2.0', '1e3', '3')})",
            lambda: f"round({self.pick('f', 'st.`in`.w')}, {self.number(-1, 2)})",
            lambda: f"trunc({self.pick('f', 'st.`in`.w')}, {self.number(-1, 2)})",
            lambda: f"nanvl({self.real(0)}, {self.pick('0.5', 'f')})",
            lambda: f"power({self.pick('f', 'i8')}, {self.pick(2, 3)})",
            lambda: f"atan2({self.real(0)}, {self.real(0)})",
            lambda: f"coalesce({self.real(lower)}, 1.5)",
            lambda: f"{self.pick('greatest', 'least')}({self.real(0)}, {self.pick('f', '0.0', '2.5')})",
            lambda: f"nullif({self.pick('f', 'st.`in`.w')}, {self.pick('f', '1.5', '2.5')})",
            lambda: f"CAST({self.pick('i', 'dec', 'b', 'big')} AS {self.pick('DOUBLE', 'FLOAT')})",
            lambda: f"abs({self.real(lower)})",
        )()

    def pattern(self) -> str:
        return self.pick("'a'", "'^a'", "'[a-z]+'", "'l+'", "'(a)(b)?'", "'.$'", "'\\s'", "'é|ö'", "'A'")

    def text(self, depth: int) -> str:
        if depth <= 0:
            return self.pick(*TEXTS)
        lower = depth - 1
        inner = self.text(lower)
        return self.pick(
            lambda: f"{self.pick('upper', 'lower', 'initcap', 'reverse', 'rtrim', 'ltrim')}({inner})",
            lambda: f"{self.pick('btrim', 'ltrim', 'rtrim')}({inner}, {self.pick(*WORDS)})",
            lambda: f"{self.pick('left', 'right')}({self.pick('s', 'st.`y-z`')}, {self.number(-3, 4)})",
            lambda: f"{self.pick('lpad', 'rpad')}({inner}, {self.number(0, 7)})",
            lambda: f"{self.pick('lpad', 'rpad')}({inner}, {self.number(0, 7)}, {self.pick(*WORDS)})",
            lambda: f"repeat({inner}, {self.number(-1, 3)})",
            lambda: f"replace({inner}, {self.pick(*WORDS)}, {self.pick(*WORDS)})",
            lambda: f"translate({inner}, {self.pick(*WORDS)}, {self.pick(*WORDS)})",
            lambda: f"split_part({inner}, {self.pick(*WORDS)}, {self.pick(-2, -1, 1, 2)})",
            lambda: f"substr_index({inner}, {self.pick(*WORDS)}, {self.number(-2, 2)})",
            lambda: f"concat({self.text(0)}, {self.pick(*WORDS, 'i', 'b', 'd', 'NULL')})",
            lambda: f"concat_ws({self.pick(*WORDS)}, s, {self.pick(*WORDS, 'i', 'NULL')})",
            lambda: f"({inner} || {self.pick('s', *WORDS)})",
            lambda: (
                f"regexp_replace(s, {self.pattern()}, {self.pick(chr(39) + 'x' + chr(39), *WORDS[:3])}"
                f"{self.pick('', ', ' + chr(39) + 'g' + chr(39))})"
            ),
            lambda: f"coalesce({inner}, {self.pick(*WORDS)})",
            lambda: f"nullif({self.text(0)}, {self.pick(*WORDS)})",
            lambda: f"{self.pick('greatest', 'least')}({self.text(0)}, {self.pick('s', *WORDS)})",
            lambda: f"to_hex({self.pick('i', 'big', 'u8', 'i8')})",
            lambda: f"chr({self.pick('u8', 65, 233, 26085)})",
            lambda: f"encode({self.pick('s', 'bin')}, '{self.pick('hex', 'base64')}')",
            lambda: f"CAST({self.pick('i', 'b', 'd', 'ts', 'ny', 'tns', 'dec', 'f', 'f4', 'u64')} AS STRING)",
            lambda: (
                f"to_char({self.pick('d', 'ts', 'ny')}, "
                f"{self.pick('%Y-%m-%d', '%H:%M:%S%.f', '%a %e %b %Y', '%j %U %V')!r})"
            ),
            lambda: f"array_to_string({self.pick('words', 'li')}, ',')",
            lambda: f"arrow_typeof({self.pick(self.integer, self.real, self.date, self.boolean)(lower)})",
            lambda: f"md5({self.text(0)})",
        )()

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self.pick("b", "b2")
        lower = depth - 1
        compare = self.pick(*COMPARE)
        return self.pick(
            lambda: f"({self.boolean(lower)} {self.pick('AND', 'OR')} {self.boolean(lower)})",
            lambda: f"(NOT {self.boolean(lower)})",
            lambda: f"({self.boolean(lower)} IS {self.pick('', 'NOT ')}{self.pick('TRUE', 'FALSE', 'NULL')})",
            lambda: f"({self.integer(lower)} {compare} {self.integer(0)})",
            lambda: f"({self.pick('i', 'big', 'st.x')} {compare} {self.number()})",
            lambda: f"({self.real(0)} {compare} {self.pick('0.0', '1.5', '-7.25', '2')})",
            lambda: f"({self.text(lower)} {compare} {self.pick(*WORDS)})",
            lambda: f"(s {compare} ls)",
            lambda: (
                f"({self.text(0)} {self.pick('', 'NOT ')}{self.pick('LIKE', 'ILIKE')} "
                f"{self.pick(chr(39) + 'a%' + chr(39), chr(39) + '%l_o%' + chr(39), chr(39) + '_' + chr(39))})"
            ),
            lambda: f"({self.pick('i', 'u8', 'i16')} {self.pick('', 'NOT ')}IN (1, 2, {self.number()}))",
            lambda: f"({self.text(0)} {self.pick('', 'NOT ')}IN ({self.pick(*WORDS)}, {self.pick(*WORDS)}))",
            lambda: f"(i {self.pick('', 'NOT ')}BETWEEN {self.number(-5, 2)} AND {self.number(2, 9)})",
            lambda: f"({self.any(0)} IS {self.pick('', 'NOT ')}NULL)",
            lambda: f"(i IS {self.pick('', 'NOT ')}DISTINCT FROM {self.integer(0)})",
            lambda: f"{self.pick('starts_with', 'ends_with', 'contains')}({self.text(0)}, {self.pick(*WORDS)})",
            lambda: f"regexp_like({self.text(0)}, {self.pattern()}{self.pick('', ', ' + chr(39) + 'i' + chr(39))})",
            lambda: f"contains_tokens({self.text(0)}, {self.pick(*WORDS)})",
            lambda: f"({self.pick('d', *MOMENTS)} {compare} {self.pick(*self.instants())})",
            lambda: f"({self.pick(*MOMENTS[:3])} {compare} {self.pick('d', *MOMENTS[:3])})",
            lambda: f"({self.pick('dec', 'dec + 1', 'dec * dec')} {compare} {self.pick('dec', 'i', 'u8', 1, 0)})",
            lambda: f"{self.pick('isnan', 'iszero')}({self.pick('f', 'f4', 'i', 'st.x')})",
            lambda: f"array_has({self.pick('li', 'li')}, {self.number()})",
            lambda: f"(bin {compare} {self.pick(chr(88) + chr(39) + '61' + chr(39), chr(88) + chr(39) + chr(39))})",
        )()

    @staticmethod
    def instants() -> list[str]:
        return [
            "timestamp '2024-01-01 12:00:00'",
            "timestamp(3) '2020-02-29 01:02:03'",
            "date '2020-02-29'",
            "date '1969-12-31'",
            "CAST('2024-01-02' AS TIMESTAMP)",
        ]

    def date(self, depth: int) -> str:
        return self.pick(
            "d",
            f"to_date({self.pick('ts', 'ny', 'd')})",
            f"CAST({self.pick('ts', 'tns', 'ny', 'tms')} AS DATE)",
            f"coalesce(d, date '2020-02-{self.number(10, 29)}')",
            f"make_date({self.pick(2020, 'u8 + 1', 1999)}, {self.number(1, 12)}, {self.number(1, 28)})",
            f"greatest(d, date '20{self.number(10, 29)}-01-01')",
            f"nullif(d, {self.pick('d', 'CAST(ts AS DATE)')})",
        )

    def moment(self, depth: int) -> str:
        column = self.pick(*MOMENTS)
        return self.pick(
            column,
            f"date_trunc('{self.pick(*UNITS)}', {self.pick('d', *MOMENTS)})",
            f"date_bin(INTERVAL '{self.number(1, 40)} {self.pick('minutes', 'hours', 'days', 'seconds')}', "
            f"{self.pick('ts', 'tms', 'tns', 'tz', 'ny', 'd')})",
            f"to_timestamp({self.pick('ts', 'i', 'tz', 'f', 'i8')})",
            f"to_timestamp_{self.pick('seconds', 'millis', 'micros', 'nanos')}({self.pick('i', 'ts', 'tns', 'ny')})",
            f"from_unixtime({self.pick('i', 'i8', 'u8')}{self.pick('', ', ' + chr(39) + 'Asia/Tokyo' + chr(39))})",
            f"to_local_time({self.pick('tz', 'ny', 'ts')})",
            f"to_time({self.pick('ts', 'ny', 'tns')})",
            f"({self.pick('ts - ts', 'd - d', 'tz - ny', 'tms - tms')})",
            f"coalesce({self.pick('ts', 'tms')}, {self.pick(*self.instants()[:1])})",
            f"CAST({self.pick('d', 'tns', 'tz', 'ny', 'tms')} AS TIMESTAMP{self.pick('', '(0)', '(3)', '(9)')})",
        )

    def decimal(self, depth: int) -> str:
        inner = "dec" if depth <= 0 else self.decimal(depth - 2)
        return self.pick(
            "dec",
            f"({inner} {self.pick(*'+-*')} {self.pick('dec', 'i8', 'u8', 2)})",
            f"(dec {self.pick(*'/%')} {self.pick(2, 3, 7)})",
            f"(-{inner})",
            f"abs({inner})",
            f"round(dec, {self.pick(0, 1, 2)})",
            f"coalesce({inner}, 1)",
            f"{self.pick('greatest', 'least')}(dec, {self.pick('i', 'dec', 0)})",
            f"CAST({self.pick('i', 'dec', 'u8', 'i16')} AS DECIMAL({self.pick('12,3', '20,0', '38,4', '14,1')}))",
            f"TRY_CAST({self.pick('f', 's', 'big', 'dec')} AS DECIMAL({self.pick('10,2', '5,1', '3,0')}))",
        )

    def list(self, depth: int) -> str:
        return self.pick("li", "words", f"make_array(i, {self.number()})", "st", "bin", "fsb", "regexp_match(s, 'a')")

    def cast(self, depth: int) -> str:
        column = self.pick("i", "i8", "f4", "s", "b", "d", "ts", "tms", "u8", "dec", "ls")
        if self.number() > 6:
            return f"arrow_cast({self.pick('i', 'i8', 'u8', 'id')}, '{self.pick(*ARROW_TYPES)}')"
        return f"TRY_CAST({column} AS {self.pick('INT', 'STRING', 'DOUBLE', 'DATE', 'SMALLINT', 'BOOLEAN')})"

    def any(self, depth: int) -> str:
        return self.pick("i", "f", "s", "st", "li", "ts", "dec", "b", "d", "bin", "st.`in`", "words")


class DuckGrammar:
    """Random expressions that the reference rejects, in the SQL that DuckDB shares with the dialect."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def expression(self) -> str:
        """Return an expression of any type."""
        return self.pick(self.case, self.case, self.special, self.interval, self.decimal)()

    def condition(self) -> str:
        return self.pick(
            f"i {self.pick(*COMPARE)} {self.random.randint(-4, 7)}",
            f"big {self.pick(*COMPARE)} {self.random.randint(0, 9)}",
            f"s {self.pick(*COMPARE)} {self.pick(*WORDS[:4])}",
            f"f {self.pick('>', '<', '=')} {self.pick('0.5', '2.5', '1.5')}",
            f"d {self.pick(*COMPARE)} DATE '2020-02-29'",
            f"dec {self.pick(*COMPARE)} {self.pick('0.05', '1.5', '0', '-3')}",
            f"i IN (1, 2, {self.random.randint(0, 9)})",
            f"s LIKE {self.pick(chr(39) + 'a%' + chr(39), chr(39) + '%l%' + chr(39))}",
            f"{self.pick('i', 's', 'd', 'b', 'dec')} IS {self.pick('', 'NOT ')}NULL",
            self.pick("b", "b2", "b AND b2", "NOT b", "b OR b2"),
        )

    def case(self) -> str:
        values = self.pick(self.integers, self.texts, self.reals, self.dates, self.truths)
        branches = [f"WHEN {self.condition()} THEN {self.pick(*values())}" for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.3:
            branches = [f"WHEN {self.random.randint(0, 7)} THEN {self.pick(*values())}" for _ in branches]
            branches[0] = f"i {branches[0]}"
        otherwise = self.pick("", f" ELSE {self.pick(*values())}")
        return f"CASE {' '.join(branches)}{otherwise} END"

    def integers(self) -> list[str]:
        return ["i", "big", "u8", "0", "42", "NULL", "u8 + big % 7", "length(s)", "abs(i8 % 5)"]

    def texts(self) -> list[str]:
        return ["s", "'x'", "upper(s)", "NULL", "s || '!'", "CAST(i AS VARCHAR)"]

    def reals(self) -> list[str]:
        return ["f", "CAST(1.5 AS DOUBLE)", "f * 2", "NULL", "-f"]

    def dates(self) -> list[str]:
        return ["d", "DATE '2024-02-29'", "NULL", "CAST(ts AS DATE)"]

    def truths(self) -> list[str]:
        return ["b", "true", "i > 1", "NULL", "b2"]

    def special(self) -> str:
        start, length = self.random.randint(1, 4), self.random.randint(0, 4)
        return self.pick(
            f"substring(s FROM {start} FOR {length})",
            f"substring(s FROM {start})",
            f"substr(s, {start}, {length})",
            f"trim({self.pick('BOTH', 'LEADING', 'TRAILING')} {self.pick(*WORDS[:3], *WORDS[6:8])} FROM s)",
            "trim(s)",
            f"position({self.pick(*WORDS[:3])} IN s)",
            f"extract({self.pick('year', 'month', 'day', 'quarter', 'week', 'doy')} FROM {self.pick('d', 'ts')})",
            f"{self.pick('ceil', 'floor')}(f)",
            f"s {self.pick('', 'NOT ')}LIKE '%!_%' ESCAPE '!'",
            f"s LIKE {self.pick(chr(39) + 'a#%' + chr(39), chr(39) + '%a%' + chr(39))} ESCAPE '#'",
            f"i {self.pick('', 'NOT ')}IN (big, i8, {self.random.randint(0, 9)}, i16)",
            f"s {self.pick('', 'NOT ')}IN (ls, upper(s), 'a')",
        )

    def interval(self) -> str:
        unit = self.pick("MONTH", "DAY", "YEAR", "WEEK", "QUARTER")
        amount = f"INTERVAL '{self.random.randint(-15, 40)}' {unit}"
        time = f"INTERVAL '{self.random.randint(-99, 99)} {self.pick('hours', 'minutes', 'seconds', 'milliseconds')}'"
        mixed = f"INTERVAL '{self.random.randint(0, 5)} years {self.random.randint(0, 20)} months 3 days 04:05:06'"
        return self.pick(
            f"CAST(d {self.pick(*'+-')} {amount} AS DATE)",
            f"ts {self.pick(*'+-')} {amount}",
            f"ts {self.pick(*'+-')} {time}",
            f"ts {self.pick(*'+-')} {mixed}",
            f"{amount} + ts",
            f"d + {time}",
            f"ts > d + {amount}",
            f"ts BETWEEN d - {amount} AND d + {mixed}",
        )

    def decimal(self) -> str:
        number = self.pick("0.05", "1.5", "0.075", "-3", "7", "0.0500")
        return self.pick(
            f"dec {self.pick(*COMPARE)} {number}",
            f"dec {self.pick(*'+-*')} {number}",
            f"dec BETWEEN {number} AND 1.50",
            f"dec IN ({number}, 0.07)",
            f"CASE WHEN dec > {number} THEN dec ELSE 0.25 END",
            f"coalesce(dec, {number})",
        )
