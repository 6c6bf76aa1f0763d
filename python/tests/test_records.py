"""Records as a mapping."""

from __future__ import annotations

import pathlib

import counterfoil
import pytest
from conftest import KEY


def test_a_mapping(connection: counterfoil.Connection) -> None:
    records = connection.records
    records["b"] = b"two"
    records["a/x"] = bytearray(b"one")
    records["a/y"] = b""
    assert list(records) == ["a/x", "a/y", "b"]
    assert records.names("a/") == ["a/x", "a/y"]
    assert len(records) == 3
    assert records["a/x"] == b"one"
    assert records.get("nothing") is None
    assert "a/y" in records and "nothing" not in records and 7 not in records
    assert dict(records) == {"a/x": b"one", "a/y": b"", "b": b"two"}
    assert records.pop("b") == b"two"
    with pytest.raises(KeyError):
        records["b"]
    with pytest.raises(KeyError):
        del records["b"]
    assert records.delete("a/x", "nothing") == 1
    records.update({"c": b"three"})
    records.clear()
    assert list(records) == []


def test_they_stay(path: pathlib.Path) -> None:
    with counterfoil.connect(path, key=KEY) as connection:
        connection.records["a"] = b"one"
    with counterfoil.connect(path, key=KEY) as connection:
        assert connection.records["a"] == b"one"


def test_they_are_part_of_the_transaction(connection: counterfoil.Connection) -> None:
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.records["a"] = b"one"
    assert connection.records["a"] == b"one"
    connection.rollback()
    assert "a" not in connection.records
    with connection.transaction():
        connection.records["a"] = b"two"
    assert connection.records["a"] == b"two"
    connection.execute("CREATE TABLE t (a INTEGER)")
    del connection.records["a"]
    assert "a" not in connection.records
    connection.rollback()
    assert connection.records["a"] == b"two"
    with connection.transaction():
        connection.execute("CREATE TABLE t (a INTEGER)")
        assert connection.records.delete("a", "b", "a") == 1
        with pytest.raises(KeyError):
            del connection.records["a"]
    assert list(connection.records) == []


def test_what_cannot_be(connection: counterfoil.Connection) -> None:
    records = connection.records
    for name in ("", "x" * 10_000):
        with pytest.raises(counterfoil.DataError):
            records[name] = b""
    with pytest.raises(counterfoil.DataError):
        records["a"] = bytes(counterfoil._counterfoil.RECORD_VALUE_BYTES_MAX + 1)
    with pytest.raises(TypeError):
        records["a"] = "text"  # type: ignore[assignment]
