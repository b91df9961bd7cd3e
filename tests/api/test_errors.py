"""Tests of the classes of errors."""

from __future__ import annotations

import inspect
import pickle

import pytest

from lance_dataset import errors

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.LanceError)]
MORE = {
    errors.CommitConflictError: {"retryable": True},
    errors.FilterError: {"text": "a = = 1", "position": 4},
}


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_can_be_sent_to_another_process(kind: type[errors.LanceError]) -> None:
    error = kind("what went wrong", **MORE.get(kind, {}))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (kind, str(error), error.__dict__)
