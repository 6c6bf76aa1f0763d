"""Cursors: statements and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from ._counterfoil import Rows
from .errors import Misuse
from .frames import Frames

if TYPE_CHECKING:
    from .connection import Connection

Parameters: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values for ``?`` or ``$1`` in order, or by name for ``:name``."""
Row: TypeAlias = tuple[object, ...]
Column: TypeAlias = tuple[str, str, None, None, int | None, int | None, None]
"""Name, SQL type (equal to one of STRING, NUMBER and so on), and for NUMERIC precision and scale."""


class Cursor(Frames):
    """Runs statements and holds the rows of the last one. Made by ``Connection.cursor()`` and ``Connection.execute()``.

    >>> import counterfoil
    >>> connection = counterfoil.connect(":memory:")
    >>> cursor = connection.cursor()
    >>> cursor.execute("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER)").rowcount
    -1
    >>> cursor.executemany("INSERT INTO birds VALUES (?, ?)", [("wren", 2), ("owl", 2)]).rowcount
    2
    >>> cursor.execute("SELECT name FROM birds WHERE wings = :wings ORDER BY name", {"wings": 2}).fetchall()
    [('owl',), ('wren',)]
    """

    arraysize: int = 1
    """Rows that ``fetchmany`` gives unless told otherwise."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answers: list[tuple[str, int | None, Rows | None]] = []
        self._closed = False

    @property
    def connection(self) -> Connection:
        """The connection that made it."""
        return self._connection

    @property
    def description(self) -> list[Column] | None:
        """The columns of the rows; None where there are none."""
        rows = self._answers[0][2] if self._answers else None
        if rows is None:
            return None
        return [(name, kind, None, None, precision, scale, None) for name, kind, precision, scale in rows.columns()]

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed; -1 for a query, whose rows are counted by taking them."""
        count = self._answers[0][1] if self._answers else None
        return -1 if count is None else count

    @property
    def statusmessage(self) -> str | None:
        """What sort of statement was run last: ``SELECT``, ``INSERT``, ``CREATE TABLE`` and so on."""
        return self._answers[0][0] if self._answers else None

    @property
    def lastrowid(self) -> None:
        """Always None: rows have no number of their own. ``INSERT ... RETURNING`` answers what identity columns became."""
        return None

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement and answers this cursor. Several statements, with semicolons between them, are run one after
        the other; :meth:`nextset` goes from the rows of one to the next."""
        self._open()
        self._end()
        self._answers = self._connection._run(sql, parameters)
        return self

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Cursor:
        """Runs a statement once for each of many rows of parameters, all or none of them."""
        self._open()
        self._end()
        self._answers = [("", self._connection._run_many(sql, parameters), None)]
        return self

    def fetchone(self) -> Row | None:
        """The next row, or None."""
        rows = self._rows().fetch(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows: ``size`` of them, or ``arraysize``."""
        size = self.arraysize if size is None else size
        if size < 0:
            raise Misuse(f"fetchmany takes a number of rows, and {size} is none: use fetchall for all of them")
        return self._rows().fetch(size)

    def fetchall(self) -> list[Row]:
        """All rows that were not taken yet."""
        return self._rows().fetch()

    def nextset(self) -> bool | None:
        """Goes on to what the next of several statements answered; None if that was the last one."""
        self._open()
        if len(self._answers) < 2:
            return None
        rows = self._answers.pop(0)[2]
        if rows is not None:
            rows.close()
        return True

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing: sizes need not be known."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing: sizes need not be known."""

    def close(self) -> None:
        """Ends it, and the query whose rows it holds. How many rows were changed can still be asked."""
        counts = [(tag, count, None) for tag, count, _ in self._answers[:1]]
        self._end()
        self._answers.extend(counts)
        self._closed = True

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<counterfoil.Cursor{' (closed)' if self._closed else ''}>"

    def _open(self) -> None:
        if self._closed:
            raise Misuse("the cursor is closed")
        self._connection._open()

    def _end(self) -> None:
        answers, self._answers = self._answers, []
        for _, _, rows in answers:
            if rows is not None:
                rows.close()

    def _rows(self) -> Rows:
        self._open()
        rows = self._answers[0][2] if self._answers else None
        if rows is None:
            raise Misuse("there are no rows: run a query first")
        return rows
