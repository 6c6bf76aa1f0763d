"""Counterfoil: an SQL database in one sealed file.

Whoever holds the file cannot read it, cannot change it unnoticed, and cannot put back yesterday's copy unnoticed.

>>> import counterfoil
>>> connection = counterfoil.connect(":memory:")
>>> _ = connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER)")
>>> _ = connection.execute("INSERT INTO birds VALUES (?, ?)", ["wren", 2])
>>> connection.commit()
>>> connection.execute("SELECT * FROM birds").fetchall()
[('wren', 2)]
>>> connection.close()
"""

from ._counterfoil import __version__
from .connection import Connection, connect
from .cursor import Cursor
from .dbapi import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from .errors import (
    Bug,
    Constraint,
    Corrupt,
    CounterLost,
    DatabaseError,
    DataError,
    Device,
    Error,
    Full,
    Input,
    IntegrityError,
    InterfaceError,
    InternalError,
    Interrupted,
    Locked,
    Misuse,
    Network,
    NotADatabase,
    NotFound,
    NotSupported,
    NotSupportedError,
    NotTrusted,
    NotVerified,
    OperationalError,
    ProgrammingError,
    RolledBack,
    SnapshotTooOld,
    Sql,
    Tampered,
    Warning,
    WrongKey,
)
from .frames import Result
from .published import Answer, Verdict, ask, check
from .records import Records
from .series import Series, SeriesWriter, Written

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Answer",
    "Binary",
    "Bug",
    "Connection",
    "Constraint",
    "Corrupt",
    "CounterLost",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Device",
    "Error",
    "Full",
    "Input",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interrupted",
    "Locked",
    "Misuse",
    "Network",
    "NotADatabase",
    "NotFound",
    "NotSupported",
    "NotSupportedError",
    "NotTrusted",
    "NotVerified",
    "OperationalError",
    "ProgrammingError",
    "Records",
    "Result",
    "RolledBack",
    "Series",
    "SeriesWriter",
    "SnapshotTooOld",
    "Sql",
    "Tampered",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Verdict",
    "Warning",
    "Written",
    "WrongKey",
    "__version__",
    "apilevel",
    "ask",
    "check",
    "connect",
    "paramstyle",
    "threadsafety",
]
