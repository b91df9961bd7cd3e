"""Calls of all modules have the results of the reference, errors of the same kinds, or a difference that is listed.

A sample of the calls is run by default, and all with ``LANCE_STRESS=1``.
"""

from __future__ import annotations

import os

import lance.arrow  # noqa: F401 - it cannot be imported when another package has registered the types
import pytest
from support.calls import changing, expressions, modules, reading, searching
from support.calls.listed import RULES, reason_of
from support.calls.running import Difference, compared
from support.calls.texts import Group
from support.calls.worlds import World

GROUPS = [each for module in (reading, expressions, changing, searching, modules) for each in module.GROUPS]
ALL = bool(os.environ.get("LANCE_STRESS"))
#: Every which call of a group is run by default: those that change a copy of a table take longer.
STEPS = {True: 29, False: 11}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("calls"))


def differences(world: World, group: Group) -> list[Difference]:
    calls = group.calls if ALL else group.calls[:: STEPS[group.changes]]
    return [found for text in calls if (found := compared(world, group, text)) is not None]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.subject)
def test_calls(world: World, group: Group) -> None:
    unlisted = [found for found in differences(world, group) if reason_of(found) is None]
    assert not unlisted, "\n".join(f"{each.kind}: {each.call}\n  {each.ours}\n  {each.theirs}" for each in unlisted)


def test_there_are_enough_calls() -> None:
    assert len({text for group in GROUPS for text in group.calls}) >= 3000


def test_rules_match_what_they_say() -> None:
    """A rule is for one kind of outcome: an outcome without its words is not listed."""
    assert reason_of(Difference("results", "ds.count_rows()", "'3'", "'4'")) is None
    assert reason_of(Difference("refused", "ds.count_rows()", "ValueError: no", "'4'")) is None
    assert all(rule.is_exact for rule in RULES)
