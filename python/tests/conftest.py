"""What the tests share: a database in a file with a key, and a place for counters that is nobody's."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Iterator

import counterfoil
import pytest

KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def nobodys_state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("COUNTERFOIL_") and name != "COUNTERFOIL_PROGRAM":
            monkeypatch.delenv(name)
    monkeypatch.setenv("COUNTERFOIL_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """What runs in the background of a shell begins with them ignored: a test that interrupts what is endless would be endless, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """A database with nothing in it, and closed."""
    path = tmp_path / "birds.db"
    counterfoil.connect(path, key=KEY, create=True).close()
    return path


@pytest.fixture
def connection(path: pathlib.Path) -> Iterator[counterfoil.Connection]:
    connection = counterfoil.connect(path, key=KEY)
    yield connection
    connection.close()


@pytest.fixture
def memory() -> Iterator[counterfoil.Connection]:
    connection = counterfoil.connect(":memory:", autocommit=True)
    yield connection
    connection.close()
