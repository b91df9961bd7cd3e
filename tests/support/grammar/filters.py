"""Random filters over the table of `filter_table`."""

from __future__ import annotations

import random

INTEGERS = ["i8", "i16", "i", "big", "u8", "u32", "u64"]
MOMENTS = [
    "timestamp '2024-01-01 12:00:00'",
    "timestamp '1970-01-01 00:00:00'",
    "timestamp(3) '2020-02-29 01:02:03'",
    "date '2020-02-29'",
]
COMPARE = ["=", "!=", "<>", "<", "<=", ">", ">="]
WORDS = ["'a'", "''", "'A'", "'Éa_b%'", "'héllo wörld'", "'zz'", "NULL"]
BYTES = ["X'61'", "X''", "X'ff'"]
PATTERNS = ["'a%'", "'%l_o%'", "'_'", "'%\\_%'", "'%日%'", "'%'", "'A%'"]


class Grammar:
    """Random filters, except those that the reference is known to simplify wrongly.

    Those are nulls in lists and empty ranges under IS NULL or IS FALSE, and numbers without an exact float32 there.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def filter(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.15:
            return self.predicate()
        form = self.pick("AND", "OR", "AND", "OR", "NOT", "IS")
        if form == "NOT":
            return f"NOT ({self.filter(depth - 1)})"
        if form == "IS":
            return f"({self.filter(depth - 1)}) IS {self.pick('', 'NOT ')}{self.pick('TRUE', 'FALSE', 'NULL')}"
        return f"({self.filter(depth - 1)}) {form} ({self.filter(depth - 1)})"

    def predicate(self) -> str:
        return self.pick(
            self.integer, self.integer, self.real, self.text, self.moment, self.boolean, self.nested, self.null
        )()

    def integer(self) -> str:
        left = self.pick(*INTEGERS, "st.x")
        low, high = self.random.randint(0, 5), self.random.randint(0, 127)
        return self.pick(
            f"{left} {self.pick(*COMPARE)} {high}",
            f"{low} {self.pick(*COMPARE)} {left}",
            f"{left} {self.pick(*COMPARE)} {self.pick(*INTEGERS)}",
            f"{left} {self.pick('', 'NOT ')}BETWEEN {low} AND {high}",
            f"{left} {self.pick('', 'NOT ')}IN ({low}, {high}, {self.pick('7', '0')})",
            f"{self.pick(*INTEGERS[:3], 'u8')} {self.pick(*'+-*%/')} {low + 1} {self.pick(*COMPARE)} {high}",
            f"{left} IS {self.pick('', 'NOT ')}DISTINCT FROM {self.pick(low, 'NULL', *INTEGERS[:4])}",
            f"abs({self.pick('i', 'u8')}) {self.pick(*COMPARE)} {low}",
            f"coalesce({left}, {low}) {self.pick(*COMPARE)} {high}",
        )

    def real(self) -> str:
        left, right = self.pick("f", "f4", "st.`in`.w"), self.pick("f", "f4", "i8")
        number = self.pick("0", "0.0", "-0.0", "1.5", "2.5e0", "0.25", "-7.25", "CAST('NaN' AS DOUBLE)")
        return self.pick(
            f"{left} {self.pick(*COMPARE)} {number}",
            f"{number} {self.pick(*COMPARE)} {left}",
            f"{left} {self.pick(*COMPARE)} {right}",
            f"{left} {self.pick('', 'NOT ')}IN ({number}, 2.5)",
            f"{left} IS {self.pick('', 'NOT ')}DISTINCT FROM {right}",
            f"{left} + 1 {self.pick(*COMPARE)} {self.pick('1', '2.5', '3.5')}",
        )

    def text(self) -> str:
        left = self.pick("s", "ls", "lower(s)", "st.`y-z`", "s || 'b'")
        return self.pick(
            f"{left} {self.pick(*COMPARE)} {self.pick(*WORDS)}",
            f"s {self.pick(*COMPARE)} ls",
            f"{left} {self.pick('', 'NOT ')}{self.pick('LIKE', 'ILIKE')} {self.pick(*PATTERNS)}",
            f"{left} {self.pick('', 'NOT ')}IN ({self.pick(*WORDS[:6])}, {self.pick(*WORDS[:6])})",
            f"{self.pick('starts_with', 'ends_with', 'contains')}({left}, {self.pick(*WORDS[:5])})",
            f"length({left}) {self.pick(*COMPARE)} {self.random.randint(0, 6)}",
            f"bin {self.pick(*COMPARE)} {self.pick(*BYTES)}",
        )

    def moment(self) -> str:
        left = self.pick("d", "ts", "tns", "tms", "tz", "ny")
        return self.pick(
            f"{left} {self.pick(*COMPARE)} {self.pick(*MOMENTS)}",
            f"{self.pick('ts', 'tns', 'tms')} {self.pick(*COMPARE)} {self.pick('ts', 'tns', 'tms', 'd')}",
            f"date_part('{self.pick('month', 'day', 'hour', 'doy')}', {left}) {self.pick(*COMPARE)} 2",
            f"date_part('year', {left}) {self.pick(*COMPARE)} 2020",
            f"ts {self.pick('', 'NOT ')}BETWEEN {self.pick(*MOMENTS[1:3])} AND {MOMENTS[0]}",
        )

    def boolean(self) -> str:
        return self.pick(
            "b", "b2", "NOT b", f"b {self.pick(*COMPARE)} b2", "b IS NOT TRUE", "b2 = true", "b IS DISTINCT FROM b2"
        )

    def nested(self) -> str:
        return self.pick(
            f"array_has(li, {self.random.randint(0, 5)})",
            "array_has(words, 'a')",
            f"array_has_any(li, [{self.random.randint(0, 5)}, 4])",
            "array_has_all(words, ['a', 'b'])",
            f"array_length(li) {self.pick(*COMPARE)} {self.random.randint(0, 3)}",
            f"li[{self.pick(0, 1, 2, -1)}] {self.pick(*COMPARE)} {self.random.randint(0, 5)}",
            f"vec[2] {self.pick(*COMPARE)} 4",
        )

    def null(self) -> str:
        column = self.pick("i", "f", "s", "st", "st.x", "st.`in`", "li", "ts", "dec", "b", "u64")
        return f"{column} IS {self.pick('', 'NOT ')}NULL"
