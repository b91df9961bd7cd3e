"""Values of the options of ``spark.read`` and ``df.write``, parsed from text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from lance_dataset.errors import InvalidInputError, UnsupportedError, nearest_name_hint
from lance_dataset.util import strict_bool

__all__ = [
    "NO_CATALOG_TABLES",
    "column_names",
    "json_object",
    "known_options",
    "one_of",
    "parsed_storage_options",
    "path_option",
    "positive",
    "storage_options_text",
    "truth",
    "version",
]

#: Why datasets cannot be tables of Spark's catalog, and what to do.
NO_CATALOG_TABLES = (
    "Spark does not pass the location of its tables to data sources written in Python, so they could not be read. "
    "Use a view: CREATE TEMPORARY VIEW name USING lance OPTIONS (path 'path or URI of the dataset')"
)

#: Options that Spark itself keeps for a stream.
_OF_STREAMS = frozenset({"checkpointlocation", "queryname"})
#: Properties of a table of its catalog that Spark passes among the options.
_OF_SPARK = frozenset(
    ["owner", "provider", "location", "comment", "external", "is_managed_location", "collation", "serialization.format"]
)


def storage_options_text(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Convert storage options of a Python call to the hashable form that the option classes hold."""
    return tuple(sorted((str(key), str(value)) for key, value in (options or {}).items()))


def known_options(options: Mapping[str, str], names: tuple[str, ...], direction: str) -> dict[str, str]:
    """Return the options by their names; ``batchSize`` and ``batch_size`` are the same."""
    if options.get("provider") and options.get("owner"):
        raise UnsupportedError(f"CREATE TABLE ... USING lance does not work: {NO_CATALOG_TABLES}")
    spelled = {name.replace("_", ""): name for name in names}
    found = {}
    for given, value in options.items():
        name = spelled.get(given.lower().replace("_", ""))
        if name is not None:
            found[name] = value
        elif given.lower() not in _OF_SPARK | _OF_STREAMS and not given.startswith("option."):
            raise InvalidInputError(f"Unknown option {given!r} to {direction} lance{nearest_name_hint(given, names)}")
    return found


def path_option(options: Mapping[str, str], method: str) -> str:
    """Return the path; `method` is the one that sets it."""
    path = options.get("path")
    if not path:
        raise InvalidInputError(
            f'No dataset given: call {method}("path or URI of the dataset"). If this is a table of the catalog: '
            f"{NO_CATALOG_TABLES}"
        )
    return path


def positive(options: Mapping[str, str], name: str) -> int | None:
    """Return a whole number above 0, or None if the option is not given."""
    text = options.get(name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise InvalidInputError(f"The option {name!r} must be a positive whole number, not {text!r}")
    return value


def truth(options: Mapping[str, str], name: str) -> bool:
    """Return a truth value; false if the option is not given."""
    text = options.get(name, "false")
    value = strict_bool(text.lower())
    if value is None:
        raise InvalidInputError(f"The option {name!r} must be true or false, not {text!r}")
    return value


def json_object(options: Mapping[str, str], name: str) -> dict[str, object]:
    """Return an option that is a JSON object; an empty one if it is not given."""
    text = options.get(name)
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"The option {name!r} is not JSON ({error}): {text!r}") from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"The option {name!r} must be a JSON object by column, not {text!r}")
    return value


def one_of(options: Mapping[str, str], *names: str) -> None:
    """Raise if more than one of some options is given."""
    given = [name for name in names if options.get(name)]
    if len(given) > 1:
        raise InvalidInputError(f"Give one of the options {' and '.join(map(repr, given))}, not both")


def version(text: str | None) -> int | str | None:
    """Return a version number, or a tag."""
    if text is None or text == "":
        return None
    return int(text) if text.isascii() and text.isdigit() else text


def column_names(text: str | None, option: str) -> tuple[str, ...] | None:
    """Parse a JSON list of names, or names separated by commas."""
    if text is None:
        return None
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except ValueError as error:
            raise InvalidInputError(f"The option {option!r} is not a JSON list of names: {text!r} ({error})") from error
        if not all(isinstance(name, str) for name in names):
            raise InvalidInputError(f"The option {option!r} must hold names only: {text!r}")
    else:
        names = [name.strip() for name in text.split(",")]
    if not names or not all(names):
        raise InvalidInputError(f"The option {option!r} has no names or an empty one: {text!r}")
    if len(set(names)) < len(names):
        raise InvalidInputError(f"The option {option!r} names a column twice: {text!r}")
    return tuple(names)


def parsed_storage_options(text: str | None) -> tuple[tuple[str, str], ...]:
    """Return settings of an object store, given as a JSON object."""
    if not text:
        return ()
    try:
        parsed = json.loads(text)
    except ValueError as error:  # it has the whole text
        raise InvalidInputError(f"The option 'storage_options' is not a JSON object ({error})") from None
    if not isinstance(parsed, dict):
        raise InvalidInputError("The option 'storage_options' must be a JSON object of names and values")
    return storage_options_text(parsed)
