"""What PEP 249 wants of a module beside connections: constants, types and constructors of values."""

from __future__ import annotations

import datetime
import time as clock
from typing import Final

apilevel: Final = "2.0"
threadsafety: Final = 2
"""Threads may share connections; one at a time is served. Cursors belong to one thread."""
paramstyle: Final = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date so many seconds after 1970 began."""
    return datetime.date(*clock.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day so many seconds after 1970 began."""
    return datetime.time(*clock.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time so many seconds after 1970 began."""
    return datetime.datetime(*clock.localtime(ticks)[:6])


class TypeObject:
    """A sort of column types: it equals each of them, as ``Cursor.description`` names it.

    >>> import counterfoil
    >>> cursor = counterfoil.connect(":memory:").execute("SELECT 1.5 AS price")
    >>> cursor.description[0][1]
    'numeric(2,1)'
    >>> cursor.description[0][1] == counterfoil.NUMBER
    True
    """

    def __init__(self, name: str, *types: str) -> None:
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self._types == other._types
        return isinstance(other, str) and other.partition("(")[0].strip() in self._types

    def __hash__(self) -> int:
        return hash(self._types)

    def __repr__(self) -> str:
        return f"counterfoil.{self._name}"


STRING: Final = TypeObject("STRING", "text", "character", "character varying", "uuid")
BINARY: Final = TypeObject("BINARY", "bytea")
NUMBER: Final = TypeObject(
    "NUMBER", "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric"
)
DATETIME: Final = TypeObject(
    "DATETIME", "date", "time", "timestamp", "timestamp with time zone", "interval"
)
ROWID: Final = TypeObject("ROWID")
