"""Series tables without SQL: points go in one by one, and come out as Arrow or tuples."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from . import _counterfoil
from .frames import Result

if TYPE_CHECKING:
    from .connection import Connection

Moment: TypeAlias = datetime.datetime | datetime.date | int
"""A time: one of Python's (naive means UTC), or an integer in the unit of the column: microseconds since 1970, nanoseconds
for TIMESTAMP(9)."""


class Written(NamedTuple):
    """What became of points that were written."""

    points: int
    """Points that are durable now."""
    kept_apart: int
    """Those of them that are ahead of the clock and were kept apart (``future_max``)."""
    expired: int
    """Points beside them that are older than what the table keeps, and were not stored (``retention``)."""


class Series:
    """A series table. Made by ``Connection.series(name)``.

    >>> import counterfoil
    >>> connection = counterfoil.connect(":memory:", autocommit=True)
    >>> _ = connection.execute(
    ...     "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts)) "
    ...     "WITH (engine = 'series')"
    ... )
    >>> readings = connection.series("readings")
    >>> with readings.writer() as writer:
    ...     boiler = writer.cursor("boiler")
    ...     for second in range(3600):
    ...         writer.push(boiler, second * 1_000_000, 81.5)
    >>> readings.count()
    3600
    >>> readings.newest("boiler")
    ('boiler', datetime.datetime(1970, 1, 1, 0, 59, 59), 81.5)
    >>> len(readings.read("boiler", first=0, last=59_000_000).fetchall())
    60
    """

    def __init__(self, connection: Connection, series: _counterfoil.Series) -> None:
        self._connection = connection
        self._series = series

    @property
    def name(self) -> str:
        """The name of the table."""
        return self._series.name

    @property
    def columns(self) -> list[str]:
        """Names of its columns, in order."""
        return [name for name, _, _ in self._series.columns()]

    def count(self) -> int:
        """Points in it, without reading them. Changes of what is old are counted when they are merged."""
        return self._series.count()[0]

    def read(self, *key: object, first: Moment | None = None, last: Moment | None = None) -> Result:
        """The points of one series, named by a value for each column of the key but the time; without any, those of all
        series one after the other. From ``first`` to ``last``, both included, in the order of time."""
        return Result(self._series.read(key or None, first, last))

    def newest(self, *key: object) -> tuple[object, ...] | None:
        """The newest point of a series, or None."""
        return next(iter(self._series.newest(key).fetch(1)), None)

    def append(self, data: object, columns: Sequence[str] | None = None) -> int:
        """Adds points from anything that gives Arrow data, as one statement of the connection. See ``Connection.load``."""
        return self._connection.load(self.name, data, columns)

    def writer(self) -> SeriesWriter:
        """Begins to write, point by point. The writer commits by itself: it is no part of this connection's transaction,
        and waits for it."""
        return SeriesWriter(self._series.writer())

    def __repr__(self) -> str:
        return f"<counterfoil.Series {self.name}>"


class SeriesWriter:
    """Writes points into a series table. Made by ``Series.writer()``.

    What is pushed waits in memory; :meth:`commit`, or the end of a ``with`` block that no exception ends, makes it durable.
    When 131,072 points wait they are committed by themselves, as one.
    """

    def __init__(self, writer: _counterfoil.SeriesWriter) -> None:
        self._writer = writer

    def cursor(self, *key: object) -> _counterfoil.SeriesCursor:
        """Where points of one series go: a value for each column of the key but the time."""
        return self._writer.cursor(key)

    def push(self, cursor: _counterfoil.SeriesCursor, time: Moment, *values: object) -> None:
        """Adds a point: its time, and a value for each column that is not of the key."""
        self._writer.push(cursor, time, values)

    def extend(self, cursor: _counterfoil.SeriesCursor, points: Iterable[Sequence[object]]) -> int:
        """Adds points, each a time with its values; answers how many."""
        return self._writer.extend(cursor, points)

    def commit(self) -> Written:
        """Makes all that was pushed durable, and answers what became of it since the last call."""
        return Written(*self._writer.commit())

    @property
    def waiting(self) -> int:
        """Points that wait."""
        return self._writer.waiting()

    def discard(self) -> None:
        """Forgets what waits."""
        self._writer.discard()

    def close(self) -> None:
        """Ends it. What waits is not stored."""
        self._writer.close()

    def __enter__(self) -> SeriesWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        return "<counterfoil.SeriesWriter>"
