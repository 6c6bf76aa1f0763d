"""Questions about published tables: over folders and HTTP, to honest servers and others."""

from __future__ import annotations

import datetime
import http.server
import os
import pathlib
import shutil
import signal
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import counterfoil
import pytest
from conftest import KEY

ROWS = [("ABB", datetime.date(2026, 1, 5), 21.5), ("SAP", datetime.date(2026, 1, 5), 140.25)]
ALL = "SELECT symbol, day, price FROM quotes ORDER BY symbol"


class Published:
    """A table that is published, and what it takes to publish it again."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.site = folder / "site"
        self.path = folder / "quotes.db"
        with self.open(create=True) as connection:
            connection.execute("CREATE TABLE quotes (symbol TEXT, day DATE, price DOUBLE PRECISION, PRIMARY KEY (symbol, day))")
            connection.executemany("INSERT INTO quotes VALUES (?, ?, ?)", ROWS)
        self.owner = self.publish()

    def open(self, create: bool = False) -> counterfoil.Connection:
        return counterfoil.connect(self.path, key=KEY, create=create)

    def publish(self) -> str:
        # It is no part of a transaction, and begins none. What signing takes is told as a warning.
        with self.open() as connection, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            row = connection.execute(f"PUBLISH TABLE quotes ORDER BY symbol, day TO 'dir:{self.site}'").fetchone()
            assert not connection.in_transaction
        assert row is not None and any("signing all" in str(warning.message) for warning in told)
        return str(row[0])

    def change(self) -> None:
        with self.open() as connection:
            connection.execute("UPDATE quotes SET price = 141 WHERE symbol = 'SAP'")
        self.publish()


@pytest.fixture
def published(tmp_path: pathlib.Path) -> Published:
    return Published(tmp_path)


def test_rows_come_with_a_verdict(published: Published) -> None:
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=10)
    answer = counterfoil.ask(published.site, published.owner, ALL)
    assert answer.columns == ["symbol", "day", "price"]
    assert answer.fetchall() == ROWS
    verdict = answer.verdict
    assert verdict.word == "verified" and verdict.signatures == 4
    assert before < verdict.as_of <= datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(0) <= verdict.age < datetime.timedelta(minutes=10)
    assert verdict.text.startswith("authentic and complete as of ") and verdict.text in repr(answer)
    assert answer.sql == ALL and answer.plan


def test_rows_come_as_arrow_and_frames(published: Published) -> None:
    def asked() -> counterfoil.Answer:
        return counterfoil.ask(str(published.site), published.owner, ALL)

    assert asked().arrow().column("price").to_pylist() == [21.5, 140.25]
    assert list(asked().df()["symbol"]) == ["ABB", "SAP"]
    assert asked().pl()["price"].sum() == 161.75
    assert list(asked()) == ROWS
    nobody = counterfoil.ask(published.site, published.owner, "SELECT * FROM quotes WHERE symbol = 'X'")
    assert nobody.fetchall() == [] and nobody.columns == ["symbol", "day", "price"]


def test_what_is_not_the_owners_is_not_shown(published: Published, tmp_path: pathlib.Path) -> None:
    for page in published.site.glob("pages/*/*"):
        page.write_bytes(page.read_bytes()[:-1] + b"\0")
    with pytest.raises(counterfoil.NotVerified) as refused:
        counterfoil.ask(published.site, published.owner, ALL)
    assert refused.value.verdict == "malformed" and refused.value.exit_code == 3
    assert isinstance(refused.value, counterfoil.NotTrusted)
    (tmp_path / "other").mkdir()
    other = Published(tmp_path / "other")
    with pytest.raises(counterfoil.NotVerified) as refused:
        counterfoil.ask(other.site, published.owner, ALL)
    assert refused.value.verdict == "forged"


def test_what_was_seen_is_remembered(published: Published, tmp_path: pathlib.Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(published.site, old)
    published.change()
    state = tmp_path / "elsewhere"
    assert counterfoil.ask(published.site, published.owner, ALL, state=state).fetchall()[1][2] == 141.0
    assert list((state / "readers" / published.owner).iterdir())
    with pytest.raises(counterfoil.NotVerified) as refused:
        counterfoil.ask(old, published.owner, ALL, state=state)
    assert refused.value.verdict == "stale"
    # Who has seen nothing newer cannot know, and may say how old is too old.
    assert counterfoil.ask(old, published.owner, ALL, state=tmp_path / "new").fetchall() == ROWS
    time.sleep(0.01)
    with pytest.raises(counterfoil.NotVerified) as refused:
        counterfoil.ask(old, published.owner, ALL, max_age=0.0, clock_error=datetime.timedelta(0))
    assert refused.value.verdict == "stale"


def test_where_nothing_is_remembered_it_is_said(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COUNTERFOIL_STATE_DIR", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.warns(counterfoil.Warning, match="nothing is remembered"):
        assert counterfoil.ask(published.site, published.owner, ALL).fetchall() == ROWS


def test_answers_are_kept_and_looked_at_again(published: Published, tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "kept"
    counterfoil.ask(published.site, published.owner, ALL, compact=True, save=kept)
    with pytest.raises(counterfoil.Misuse):
        counterfoil.ask(published.site, published.owner, ALL, save=kept)
    shutil.rmtree(published.site)
    again = counterfoil.check(kept, published.owner)
    assert again.fetchall() == ROWS and again.sql == ALL and again.plan == ""
    assert again.verdict.word == "verified" and again.asked <= datetime.datetime.now(datetime.UTC)
    assert kept.stat().st_mode & 0o777 == 0o600
    whole = kept.read_bytes()
    kept.write_bytes(whole.replace(b"ABB", b"ABC"))
    with pytest.raises(counterfoil.NotVerified) as refused:
        counterfoil.check(kept, published.owner)
    assert refused.value.verdict in ("forged", "malformed")
    kept.write_bytes(whole[:100])
    with pytest.raises(counterfoil.Input):
        counterfoil.check(kept, published.owner)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def address(published: Published) -> Iterator[str]:
    def handler(*args: object) -> Quiet:
        return Quiet(*args, directory=str(published.site))  # type: ignore[arg-type]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_servers_are_asked(published: Published, address: str) -> None:
    assert counterfoil.ask(address, published.owner, ALL).fetchall() == ROWS
    with pytest.raises(counterfoil.NotFound):
        counterfoil.ask(f"{address}/nothing", published.owner, ALL)


def test_wrong_use_says_what_is_wrong(published: Published, tmp_path: pathlib.Path) -> None:
    site, owner = published.site, published.owner
    with pytest.raises(counterfoil.Network):
        counterfoil.ask("http://127.0.0.1:1", owner, ALL)
    with pytest.raises(counterfoil.NotSupported):
        counterfoil.ask("ftp://example.com", owner, ALL)
    with pytest.raises(counterfoil.Misuse):
        counterfoil.ask(site, "somebody", ALL)
    with pytest.raises(counterfoil.Misuse):
        counterfoil.ask([], owner, ALL)
    with pytest.raises(counterfoil.Misuse, match="max_age"):
        counterfoil.ask(site, owner, ALL, max_age=-1)
    with pytest.raises(counterfoil.Sql):
        counterfoil.ask(site, owner, "SELECT FROM")
    with pytest.raises(counterfoil.NotFound):
        counterfoil.ask("https://example.com", owner, ALL, tls_ca=tmp_path / "nothing.pem")
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(counterfoil.Input):
        counterfoil.ask("https://example.com", owner, ALL, tls_ca=tmp_path / "ca.pem")
    with pytest.raises(counterfoil.NotFound):
        counterfoil.check(tmp_path / "nothing", owner)


def test_ctrl_c_ends_a_question_to_a_silent_server(published: Published) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            counterfoil.ask(f"http://127.0.0.1:{port}", published.owner, ALL)


def test_others_go_on_meanwhile(published: Published, address: str) -> None:
    answers: list[object] = []

    def ask() -> None:
        answers.append(counterfoil.ask(address, published.owner, ALL).fetchall())

    # The server is a thread of this very process: if a question held the interpreter, nobody would answer it.
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [ROWS] * 4
