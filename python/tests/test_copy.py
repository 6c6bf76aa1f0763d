"""COPY in and out of files."""

from __future__ import annotations

import io
import os
import pathlib
import signal
import threading

import counterfoil
import pytest

ROWS = "".join(f"{number},bird {number}\n" for number in range(100_000))


@pytest.fixture
def birds(memory: counterfoil.Connection) -> counterfoil.Connection:
    memory.execute("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT)")
    return memory


def test_there_and_back(birds: counterfoil.Connection, tmp_path: pathlib.Path) -> None:
    assert birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO(ROWS)) == 100_000
    text, binary, path = io.StringIO(), io.BytesIO(), tmp_path / "birds.csv"
    assert birds.copy_out("COPY birds TO STDOUT (FORMAT csv)", text) == 100_000
    assert sorted(text.getvalue().splitlines()) == sorted(ROWS.splitlines())
    assert birds.copy_out("COPY (SELECT * FROM birds WHERE id < 3) TO STDOUT WITH (FORMAT csv);", binary) == 3
    assert binary.getvalue() == ROWS[:27].encode()
    with path.open("wb", buffering=0) as file:
        assert birds.copy_out("copy birds (name, id) to stdout (format csv, header)", file) == 100_000
    birds.execute("TRUNCATE birds")
    with path.open("rb") as file:
        assert birds.copy_in("COPY birds (name, id) FROM STDIN (FORMAT csv, HEADER)", file) == 100_000
    assert birds.execute("SELECT max(name) FROM birds WHERE id = 7").fetchone() == ("bird 7",)


def test_letters_of_many_bytes(birds: counterfoil.Connection) -> None:
    name = "Grünspecht 🐦" * 30_000
    assert birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO(f"1,{name}\n2,\n")) == 2
    assert birds.execute("SELECT name FROM birds ORDER BY id").fetchall() == [(name,), (None,)]
    out = io.StringIO()
    birds.copy_out("COPY birds TO STDOUT", out)
    assert out.getvalue() == f"1\t{name}\n2\t\\N\n"


def test_what_does_not_fit(birds: counterfoil.Connection) -> None:
    with pytest.raises(counterfoil.DataError, match="line 3"):
        birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO("1,a\n2,b\nthree,c\n"))
    with pytest.raises(counterfoil.IntegrityError):
        birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO("1,a\n1,b\n"))
    for sql in ("DELETE FROM birds", "COPY birds TO STDOUT", "COPY birds FROM '/etc/hostname'"):
        with pytest.raises(counterfoil.Misuse):
            birds.copy_in(sql, io.StringIO(""))
    birds.execute("INSERT INTO birds VALUES (1, 'wren')")
    for sql in (
        "DELETE FROM birds",
        "COPY birds FROM STDIN",
        "COPY birds TO '/dev/null'",
        "COPY birds TO STDOUT; DELETE FROM birds",
    ):
        with pytest.raises(counterfoil.Misuse, match="copy_out takes one COPY ... TO STDOUT"):
            birds.copy_out(sql, io.StringIO())
    with pytest.raises(counterfoil.Misuse, match="give copy_out a file"):
        birds.execute("COPY birds TO STDOUT")
    assert birds.execute("SELECT count(*) FROM birds").fetchone() == (1,)


class Broken(io.RawIOBase):
    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def read(self, size: int = -1) -> bytes:
        self.pieces -= 1
        if self.pieces < 0:
            raise ConnectionResetError("the source went away")
        return b"".join(b"%d,x\n" % number for number in range(self.pieces * 1000, self.pieces * 1000 + 1000))

    def write(self, data: object) -> int:
        raise BrokenPipeError("the target went away")


def test_exceptions_of_files(birds: counterfoil.Connection) -> None:
    for pieces in (0, 5):
        with pytest.raises(ConnectionResetError, match="the source went away"):
            birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", Broken(pieces))
    assert birds.execute("SELECT count(*) FROM birds").fetchone() == (0,)
    with pytest.raises(BrokenPipeError, match="the target went away"):
        birds.copy_out("COPY (SELECT 1) TO STDOUT", Broken(0))
    for nothing in (None, 7, "birds.csv"):
        with pytest.raises(AttributeError):
            birds.copy_in("COPY birds FROM STDIN", nothing)  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            birds.copy_out("COPY birds TO STDOUT", nothing)  # type: ignore[arg-type]
    assert birds.execute("SELECT count(*) FROM birds").fetchone() == (0,)


class Endless(io.RawIOBase):
    """Gives rows for ever, and notes how much was asked for at once."""

    def __init__(self) -> None:
        self.given = 0
        self.most = 0
        self.asked = threading.Event()

    def read(self, size: int = -1) -> bytes:
        self.most = max(self.most, size)
        self.asked.set()
        piece = b"".join(b"%d,x\n" % number for number in range(self.given, self.given + 1000))
        self.given += 1000
        return piece


def test_an_endless_file_can_be_left(birds: counterfoil.Connection) -> None:
    source = Endless()
    killer = threading.Thread(target=lambda: (source.asked.wait(), os.kill(os.getpid(), signal.SIGINT)))
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", source)
    killer.join()
    assert source.most == 256 << 10
    assert birds.execute("SELECT count(*) FROM birds").fetchone() == (0,)


def test_other_threads_go_on(birds: counterfoil.Connection) -> None:
    source, ended = Endless(), []

    def copy() -> None:
        try:
            birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", source)
        except counterfoil.Interrupted as error:
            ended.append(error)

    thread = threading.Thread(target=copy)
    thread.start()
    source.asked.wait()
    while thread.is_alive():
        birds.interrupt()
        thread.join(0.05)
    assert len(ended) == 1


def test_part_of_the_transaction(connection: counterfoil.Connection) -> None:
    connection.execute("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT)")
    connection.commit()
    connection.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO("1,wren\n"))
    assert connection.in_transaction
    connection.rollback()
    connection.copy_out("COPY birds TO STDOUT", io.StringIO())
    assert not connection.in_transaction
    assert connection.execute("SELECT count(*) FROM birds").fetchone() == (0,)


def test_a_file_that_takes_no_more_is_an_error(birds: counterfoil.Connection) -> None:
    birds.copy_in("COPY birds FROM STDIN (FORMAT csv)", io.StringIO(ROWS))
    read, write = os.pipe()
    os.set_blocking(write, False)
    with io.FileIO(write, "w") as file, pytest.raises(BlockingIOError):
        birds.copy_out("COPY birds TO STDOUT (FORMAT csv)", file)
    os.close(read)
