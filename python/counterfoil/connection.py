"""Connections: opening a database, transactions, and the ways into it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol

from . import _counterfoil, errors
from .cursor import Cursor, Parameters
from .records import Records
from .series import Series


class SupportsRead(Protocol):
    """A file to read from."""

    def read(self, size: int, /) -> str | bytes:
        """So many letters or bytes at most; none at the end."""


class SupportsWrite(Protocol):
    """A file to write to."""

    def write(self, data: Any, /) -> object:
        """Takes a text, if it is one of Python's text files, else bytes."""


def connect(
    database: str | os.PathLike[str],
    *,
    key: bytes | str | None = None,
    key_file: str | os.PathLike[str] | None = None,
    passphrase: str | bytes | None = None,
    passphrase_file: str | os.PathLike[str] | None = None,
    create: bool = False,
    read_only: bool = False,
    autocommit: bool = False,
    counter: str | os.PathLike[str] | None = "user",
    require_counter: bool = False,
    lock_timeout: float = 5.0,
) -> Connection:
    """Opens a database: a path, ``:memory:``, or ``block:/dev/X``.

    ``key`` is 32 bytes or 64 hex digits, ``key_file`` a file with one of these, ``passphrase`` a text or bytes. Without any
    of them the environment is asked as the command ``counterfoil`` does (``COUNTERFOIL_KEY_FILE`` and so on).
    ``create`` makes the database if it is not there. ``counter`` says where the file counter is that notices when an older
    copy was put back: ``user`` for the user's state folder, a folder, or None; ``tpm`` is the machine's TPM.
    ``lock_timeout`` is how many seconds a statement waits for another writer.

    >>> connection = connect(":memory:")
    >>> connection.execute("SELECT 'wren' AS bird").fetchone()
    ('wren',)
    >>> connection.close()
    """
    session = _counterfoil.open(
        os.fspath(database),
        key=key,
        key_file=None if key_file is None else os.fspath(key_file),
        passphrase=passphrase,
        passphrase_file=None if passphrase_file is None else os.fspath(passphrase_file),
        create=create,
        read_only=read_only,
        counter=None if counter is None else os.fspath(counter),
        require_counter=require_counter,
        lock_timeout=lock_timeout,
    )
    return Connection(session, os.fspath(database), autocommit)


class Connection:
    """One user of a database. Made by :func:`connect`.

    As PEP 249 has it, a statement that changes something begins a transaction, which ends with :meth:`commit` or
    :meth:`rollback`; queries outside one see what was committed last. With ``autocommit`` each statement is a transaction of
    its own.

    At the end of a ``with`` block the connection is committed, or rolled back if an exception ended the block, and closed.

    >>> import counterfoil
    >>> with counterfoil.connect(":memory:") as connection:
    ...     _ = connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY)")
    ...     _ = connection.execute("INSERT INTO birds VALUES (?)", ["wren"])
    ...     connection.commit()
    ...     connection.execute("SELECT * FROM birds").fetchall()
    [('wren',)]
    """

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, session: _counterfoil.Session, name: str, autocommit: bool) -> None:
        self._session = session
        self._name = name
        self._autocommit = autocommit
        self._closed = False
        self._savepoints = 0
        self._tell()

    def cursor(self) -> Cursor:
        """A cursor."""
        self._open()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters | None = None) -> Cursor:
        """Runs a statement with a new cursor, and answers it."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters]) -> Cursor:
        """Runs a statement for many rows of parameters with a new cursor, and answers it."""
        return self.cursor().executemany(sql, parameters)

    def commit(self) -> None:
        """Makes the transaction durable. If a statement in it failed, all of it is rolled back, and that is an error."""
        self._session.end(True)
        self._tell()

    def rollback(self) -> None:
        """Undoes the transaction."""
        self._session.end(False)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction as a block: committed at its end, undone if an exception ends it. Within another one it is a
        savepoint.

        >>> import counterfoil
        >>> connection = counterfoil.connect(":memory:", autocommit=True)
        >>> _ = connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY)")
        >>> try:
        ...     with connection.transaction():
        ...         _ = connection.execute("INSERT INTO birds VALUES ('wren')")
        ...         _ = connection.execute("INSERT INTO birds VALUES ('wren')")
        ... except counterfoil.IntegrityError:
        ...     connection.execute("SELECT count(*) FROM birds").fetchone()
        (0,)
        """
        if not self.in_transaction:
            begin, succeed, fail = "BEGIN", "COMMIT", "ROLLBACK"
        else:
            self._savepoints += 1
            name = f"counterfoil_{self._savepoints}"
            begin, succeed, fail = f"SAVEPOINT {name}", f"RELEASE SAVEPOINT {name}", f"ROLLBACK TO SAVEPOINT {name}"
        self._run(begin, None)
        try:
            yield self
        except BaseException:
            # What went wrong inside is what is told: a transaction that is gone is undone.
            with contextlib.suppress(errors.Error):
                self._run(fail, None)
            raise
        if succeed == "COMMIT":
            self.commit()
        else:
            self._run(succeed, None)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._session.transaction_state() != "idle"

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, autocommit: bool) -> None:
        if self.in_transaction:
            raise errors.Misuse("a transaction is open: commit or roll back first")
        self._autocommit = autocommit

    def load(self, table: str, data: object, columns: Sequence[str] | None = None) -> int:
        """Adds rows to a table, as one statement, from anything that gives Arrow data: tables and data frames of pyarrow,
        pandas and polars, or another cursor. Answers how many rows these were.

        The names of the data's columns say where they go, unless ``columns`` names the table's in their order; columns that
        are not named get their defaults.

        >>> import counterfoil, pyarrow
        >>> connection = counterfoil.connect(":memory:")
        >>> _ = connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER DEFAULT 2)")
        >>> connection.load("birds", pyarrow.table({"name": ["wren", "owl"]}))
        2
        """
        self._open()
        names = None if columns is None else list(columns)
        loaded = self._session.load(table, data, names, not self._autocommit)
        self._tell()
        return loaded

    def copy_in(self, sql: str, source: SupportsRead) -> int:
        """Runs ``COPY ... FROM STDIN`` with what a file gives, opened for text (UTF-8) or for bytes, and answers how many rows
        that were. The file is read piece by piece; if a line is no row, or reading raises an exception, none of the rows is there.

        >>> import counterfoil, io
        >>> connection = counterfoil.connect(":memory:")
        >>> _ = connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER)")
        >>> connection.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO("wren,2\\nowl,2\\n"))
        2
        """
        self._open()
        rows = self._session.copy_in(sql, source, not self._autocommit)
        self._tell()
        return rows

    def copy_out(self, sql: str, target: SupportsWrite) -> int:
        """Runs ``COPY ... TO STDOUT`` into a file opened for text or for bytes, and answers how many rows that were. They are
        written while they are read.

        >>> import counterfoil, sys
        >>> connection = counterfoil.connect(":memory:")
        >>> connection.copy_out("COPY (SELECT 1 AS one, 'x' AS letter) TO STDOUT (FORMAT csv, HEADER)", sys.stdout)
        one,letter
        1,x
        1
        """
        self._open()
        rows = self._session.copy_out(sql, target)
        self._tell()
        return rows

    def split_key(self, folder: str | os.PathLike[str], *, need: int, of: int) -> list[pathlib.Path]:
        """Writes shares of the database's key into files of a new folder, and answers their paths. Any ``need`` of the ``of``,
        in a folder that is given as ``key_file``, open the database; fewer tell nothing of its key. Give them to people, or
        put them into places, that are not lost together: what lies at clouds is read with the key alone, so dispersed tables
        take no rows before.

        >>> import counterfoil, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> connection = counterfoil.connect(folder / "people.foil", passphrase="a long phrase", create=True)
        >>> [share.name for share in connection.split_key(folder / "shares", need=2, of=3)]
        ['share-1-of-3.txt', 'share-2-of-3.txt', 'share-3-of-3.txt']
        >>> connection.close()
        """
        self._open()
        shares = self._session.split_key(need, of)
        made = pathlib.Path(folder)
        made.mkdir()
        paths = [_private(made / f"share-{at}-of-{of}.txt", share) for at, share in enumerate(shares, 1)]
        # Not before they are in files: a database that knows of shares takes rows that nothing else brings back.
        self._session.note_split()
        self._tell()
        return paths

    @property
    def records(self) -> Records:
        """Records by name: bytes under names, as a mapping."""
        self._open()
        return Records(self._session)

    def series(self, name: str) -> Series:
        """A series table, to be read and written without SQL."""
        self._open()
        return Series(self, self._session.series(name))

    def interrupt(self) -> None:
        """Ends the statement that is running in another thread with :class:`counterfoil.Interrupted`."""
        self._session.interrupt()

    def close(self) -> None:
        """Rolls back the transaction that is open and ends the connection. The last one of a process closes the database
        and gives back the writer's lock. Closing again does nothing."""
        self._session.close()
        self._closed = True

    def __enter__(self) -> Connection:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closed:
            return
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<counterfoil.Connection {self._name!r}{' (closed)' if self._closed else ''}>"

    def _open(self) -> None:
        if self._closed:
            raise errors.Misuse("the connection is closed")

    def _run(
        self, sql: str, parameters: Parameters | None
    ) -> list[tuple[str, int | None, _counterfoil.Rows | None]]:
        answers = self._session.run(sql, parameters, not self._autocommit)
        self._tell()
        return answers

    def _run_many(self, sql: str, parameters: Iterable[Parameters]) -> int:
        changed = self._session.run_many(sql, parameters, not self._autocommit)
        self._tell()
        return changed

    def _tell(self) -> None:
        """Passes on what the database has to say, as warnings of whoever called this package."""
        for note in self._session.notes():
            warnings.warn(note, errors.Warning, stacklevel=4)


def _private(path: pathlib.Path, text: str) -> pathlib.Path:
    """Writes a text into a new file that nobody else reads, durably."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return path
