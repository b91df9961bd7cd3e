"""Plans as text that can be drawn."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from html import escape

__all__ = ["PlanText"]

_STEP = re.compile(r"^(?P<indent> *)(?P<corner>└─ )?(?P<text>\S.*)$")
_DETAIL = re.compile(r"^ *│? +(?P<text>\S.*)$")
_INDENT = 3
#: Sizes in pixels, and characters of a line.
_LINE, _PADDING, _GAP, _WIDTH, _CHARACTERS = 15, 8, 22, 720, 108
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1d2733}.name{font-weight:bold}.run{fill:#0b6e4f}"
    ".detail{fill:#5b6673}rect{fill:#f4f7fa;stroke:#8fa1b3}path{fill:none;stroke:#8fa1b3;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e9ee}.run{fill:#6fd3a8}.detail{fill:#a3b0bd}"
    "rect{fill:#202932;stroke:#5d6f80}}"
)


@dataclass
class _Step:
    depth: int
    name: str
    facts: str
    run: str
    details: list[str] = field(default_factory=list)

    def lines(self) -> list[tuple[str, str]]:
        """Return classes and texts of the lines in the box."""
        found = [("name", self.name)]
        for kind, text in (("", self.facts), *(("detail", each) for each in self.details), ("run", self.run)):
            found += [(kind, line) for line in textwrap.wrap(text, _CHARACTERS)]
        return found


class PlanText(str):
    """Text of a plan. `to_svg` draws it; otherwise it is a string like any other."""

    __slots__ = ()

    def to_svg(self) -> str:
        """Draw the plan: a box for each step, above the box of the step that its rows come from.

        Returns
        -------
        str
            An SVG document. It needs no other file, and follows the dark mode of a browser.
        """
        steps, total = _parsed(self)
        parts: list[str] = []
        height = _PADDING
        for number, step in enumerate(steps):
            if number and step.depth == steps[number - 1].depth:
                height += _GAP // 3  # both give rows to the step above them
            elif number:
                middle = _WIDTH // 2
                parts.append(f'<path d="M{middle} {height}v{_GAP}m-4 {4 - _GAP}l4 -4l4 4"/>')
                height += _GAP
            lines = step.lines()
            tall = len(lines) * _LINE + 2 * _PADDING
            parts.append(f'<rect x="1" y="{height}" width="{_WIDTH - 2}" height="{tall}" rx="4"/>')
            for place, (kind, text) in enumerate(lines):
                parts.append(_text(height + _PADDING + _LINE * place, kind, text))
            height += tall
        for line in textwrap.wrap(total, _CHARACTERS):
            height += _LINE
            parts.append(_text(height - _PADDING, "run", line))
        height += _PADDING
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img"><title>Plan</title><style>{_STYLE}</style>{"".join(parts)}</svg>'
        )


def _text(top: int, kind: str, text: str) -> str:
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{_PADDING}" y="{top + 11}"{styled}>{escape(shown)}</text>'


def _parsed(text: str) -> tuple[list[_Step], str]:
    """Return the steps of a plan, the last one first, and the line of totals."""
    steps: list[_Step] = []
    total = ""
    for line in text.splitlines():
        found = _STEP.match(line)
        is_step = found is not None and (bool(found["corner"]) or not found["indent"])
        if found is not None and is_step and found["text"].startswith("Total: ") and not found["corner"] and steps:
            total = found["text"]
        elif found is not None and is_step:
            depth = len(found["indent"]) // _INDENT + 1 if found["corner"] else 0
            steps.append(_step(found["text"], depth))
        elif (detail := _DETAIL.match(line)) is not None and steps:
            steps[-1].details.append(detail["text"])
    return steps, total


def _step(text: str, depth: int) -> _Step:
    run = ""
    if text.endswith("]") and ", metrics=[" in text:  # the last one: texts of a query may have the same words
        text, _, run = text[:-1].rpartition(", metrics=[")
    name, _, facts = text.partition(": ")
    return _Step(depth, name, facts, run)
