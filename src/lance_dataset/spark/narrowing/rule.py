"""A rule for Spark's optimizer that tells scans what a query needs, in the driver's own Java process.

Spark passes no columns, no limit, and filters only with known errors to what is written in Python. But a session takes
rules for the optimizer, and Spark brings a Java compiler along. So the rule is text, compiled once in a Java process.
"""

from __future__ import annotations

import logging
import weakref
from importlib.resources import files
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

__all__ = ["narrow_scans"]

_LOG = logging.getLogger("lance_dataset.spark")
_NAME = "NarrowLanceScans"
#: Rules by the Python objects that stand for Java processes; None where the rule could not be compiled.
_rules: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def narrow_scans(spark: Any) -> None:
    """Add the rule to a session, if it is not there yet.

    Without it queries are right, but read all columns and rows. That is so with Spark Connect, whose clients have no
    access to the optimizer.

    Parameters
    ----------
    spark
        Spark session.
    """
    session = getattr(spark, "_jsparkSession", None)
    if session is None:
        return
    if spark._jvm not in _rules:
        _rules[spark._jvm] = _compile(spark._jvm)
    rule = _rules[spark._jvm]
    if rule is not None:
        rule.install(session.experimental())


def _compile(jvm: Any) -> Any:
    """Return the rule, a Java object, or None."""
    text = files(__package__).joinpath(f"{_NAME}.java").read_text("utf-8")
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(text)
        return compiler.getClassLoader().loadClass(_NAME).newInstance()
    except (Py4JError, TypeError) as error:  # a TypeError if Spark has no such compiler
        _LOG.warning(
            "This Spark refuses the rule that tells scans of Lance what a query needs, so they read all columns and "
            "rows. Name the columns and the filter with lance_dataset.spark.table. %s",
            " ".join(str(error).split("\n")[:2]),
        )
        return None
