"""Protobuf messages from files."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from lance_dataset.errors import CorruptFileError

__all__ = ["parse_message"]

_Parsed = TypeVar("_Parsed", bound=Message)


def parse_message(kind: type[_Parsed], data: bytes, where: str) -> _Parsed:
    """Parse a message.

    Parameters
    ----------
    kind
        Class of the message.
    data
        The bytes.
    where
        Name of the file, for error messages.

    Raises
    ------
    CorruptFileError
        The bytes are no such message.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise CorruptFileError(f"{where}: invalid {kind.DESCRIPTOR.name} message: {error}") from error
