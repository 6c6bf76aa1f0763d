"""Records: bytes under names, in the same file and the same transactions as the tables."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from ._counterfoil import Session


class Records(MutableMapping[str, bytes]):
    """The record store as a mapping of names to bytes. Made by ``Connection.records``.

    What is stored or deleted is so durably at once, unless a transaction is open: then it is part of it.

    >>> import counterfoil
    >>> connection = counterfoil.connect(":memory:")
    >>> records = connection.records
    >>> records["station/name"] = b"Lindenberg"
    >>> records["station/name"]
    b'Lindenberg'
    >>> records.names("station/")
    ['station/name']
    >>> del records["station/name"]
    >>> "station/name" in records
    False
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getitem__(self, name: str) -> bytes:
        value = self._session.record(name)
        if value is None:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: bytes | bytearray | memoryview) -> None:
        self._session.put_record(name, bytes(memoryview(value)))

    def __delitem__(self, name: str) -> None:
        if self._session.delete_records([name]) == 0:
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._session.record(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def names(self, prefix: str = "") -> list[str]:
        """The names that begin with ``prefix``, in order."""
        return self._session.record_names(prefix)

    def delete(self, *names: str) -> int:
        """Deletes records, all in one commit; answers how many of them there were."""
        return self._session.delete_records(list(names))

    def clear(self) -> None:
        """Deletes all records, in one commit."""
        self._session.delete_records(self.names())

    def __repr__(self) -> str:
        return "<counterfoil.Records>"
