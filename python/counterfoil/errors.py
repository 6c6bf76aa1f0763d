"""The exceptions: PEP 249's classes, and under them one for every kind of error that the database knows.

A class says the kind, the text is what the command ``counterfoil`` prints behind ``error:``, and ``exit_code`` is what it
ends with. Values of rows and secrets are in neither.

>>> import counterfoil
>>> connection = counterfoil.connect(":memory:")
>>> try:
...     connection.execute("SELECT * FROM nowhere")
... except counterfoil.ProgrammingError as error:
...     print(error.kind, error.exit_code)
NotFound 1
"""

from __future__ import annotations

import builtins
from typing import ClassVar, Final


class Warning(builtins.UserWarning):
    """What is no error and should still be known, such as that freshness was not checked. Given to ``warnings.warn``."""


class Error(Exception):
    """Why something was not done."""

    kind: ClassVar[str] = "Misuse"
    """The kind, by the name that it has everywhere in Counterfoil."""
    exit_code: ClassVar[int] = 1
    """What the command ``counterfoil`` ends with after such an error."""


class InterfaceError(Error):
    """Of this package rather than the database. Nothing raises it: what is used wrongly is :class:`Misuse`."""


class DatabaseError(Error):
    """Of the database."""


class DataError(DatabaseError):
    """Something is wrong with the data."""


class OperationalError(DatabaseError):
    """Something is wrong with what the database works with: files, locks, room, keys."""


class IntegrityError(DatabaseError):
    """A row breaks a rule of its table."""


class InternalError(DatabaseError):
    """Something is wrong inside the database."""


class ProgrammingError(DatabaseError):
    """The program asks for what cannot be."""


class NotSupportedError(DatabaseError):
    """The database cannot do it."""


class NotTrusted(DatabaseError):
    """What lies there is not to be trusted. None of the other classes: nobody should catch it in passing."""

    exit_code = 3


class Misuse(ProgrammingError):
    """The rules of the interface are broken: a wrong option, a closed connection, a handle used after ``fork``."""

    kind = "Misuse"


class Sql(ProgrammingError):
    """The statement does not parse, or names and types in it do not fit."""

    kind = "Sql"


class NotFound(ProgrammingError):
    """A file, table, column or record does not exist."""

    kind = "NotFound"


class Constraint(IntegrityError):
    """A row breaks a rule of its table."""

    kind = "Constraint"


class NotSupported(NotSupportedError):
    """Understood, and refused because this database cannot do it."""

    kind = "NotSupported"


class Input(DataError):
    """Data that was to be brought in, or taken out, does not fit."""

    kind = "Input"


class WrongKey(OperationalError):
    """No key slot opens with this key or passphrase."""

    kind = "WrongKey"


class NotADatabase(OperationalError):
    """The file is not a Counterfoil database."""

    kind = "NotADatabase"


class SnapshotTooOld(OperationalError):
    """The snapshot was given up because the writer needed its space."""

    kind = "SnapshotTooOld"


class Device(OperationalError):
    """The medium, or the system around it, refused or failed."""

    kind = "Device"
    exit_code = 2


class Full(OperationalError):
    """No room left, on the medium or in memory."""

    kind = "Full"
    exit_code = 2


class Network(OperationalError):
    """A server could not be reached."""

    kind = "Network"
    exit_code = 2


class Locked(OperationalError):
    """Another connection or process is writing."""

    kind = "Locked"
    exit_code = 4


class Interrupted(OperationalError):
    """The caller interrupted it."""

    kind = "Interrupted"
    exit_code = 130


class Bug(InternalError):
    """A promise inside the database was broken: please report it."""

    kind = "Bug"
    exit_code = 2


class Corrupt(NotTrusted):
    """What authenticates makes no sense."""

    kind = "Corrupt"


class Tampered(NotTrusted):
    """A page is not what was last written there."""

    kind = "Tampered"


class RolledBack(NotTrusted):
    """The image is older than what the counter vouches for."""

    kind = "RolledBack"


class CounterLost(NotTrusted):
    """The counter cannot vouch for the image."""

    kind = "CounterLost"


class NotVerified(NotTrusted):
    """An answer from an untrusted server failed verification."""

    kind = "NotVerified"
    verdict: str | None = None
    """Why, in a word: ``forged``, ``incomplete``, ``stale``, ``malformed``, ``clock`` and their like."""


BY_KIND: Final[dict[str, type[Error]]] = {
    error.kind: error
    for error in (
        Misuse,
        Sql,
        Constraint,
        NotSupported,
        NotFound,
        WrongKey,
        NotADatabase,
        Input,
        SnapshotTooOld,
        Device,
        Full,
        Network,
        Bug,
        Corrupt,
        Tampered,
        RolledBack,
        CounterLost,
        NotVerified,
        Locked,
        Interrupted,
    )
}
"""The class for every kind of error."""
