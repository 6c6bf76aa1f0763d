"""Questions about published tables: to servers that nobody has to trust, with rows only if they are the owner's.

No database takes part in it. ``docs/publish.md`` tells what is proved.
"""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from . import _counterfoil
from .errors import Warning
from .frames import Result

Span: TypeAlias = datetime.timedelta | float
"""A length of time: one of Python's, or seconds."""

_BEGIN = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Verdict(NamedTuple):
    """What is known of rows that passed every check."""

    word: str
    """Always ``verified``: rows of which that is not known do not come. Why they do not is ``NotVerified.verdict``."""
    as_of: datetime.datetime
    """No row is older than this: the end of the owner's last period, in UTC."""
    age: datetime.timedelta
    """How long ago that was when it was asked, at most."""
    signatures: int
    """How many signatures were checked."""
    text: str
    """All of it, as the command ``counterfoil ask`` prints it."""


class Answer(Result):
    """Rows that are the owner's: all that were asked for, and of a known age. Made by :func:`ask` and :func:`check`."""

    def __init__(self, rows: _counterfoil.Rows, verdict: Verdict, sql: str, plan: str, asked: datetime.datetime) -> None:
        super().__init__(rows)
        self._verdict, self._sql, self._plan, self._asked = verdict, sql, plan, asked

    @property
    def verdict(self) -> Verdict:
        """What is known of the rows."""
        return self._verdict

    @property
    def sql(self) -> str:
        """What was asked."""
        return self._sql

    @property
    def plan(self) -> str:
        """How it was answered, in words for people; empty for an answer that was kept."""
        return self._plan

    @property
    def asked(self) -> datetime.datetime:
        """When it was asked, in UTC; of an answer that was kept, as its file says, which nobody signed."""
        return self._asked

    def __repr__(self) -> str:
        return f"<counterfoil.Answer {self._verdict.text}>"


def ask(
    server: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    owner: str,
    sql: str,
    *,
    max_age: Span | None = None,
    compact: bool = False,
    state: str | os.PathLike[str] | None = None,
    clock_error: Span | None = None,
    timeout: Span | None = None,
    save: str | os.PathLike[str] | None = None,
    tls_ca: str | os.PathLike[str] | None = None,
) -> Answer:
    """Asks one SELECT about a published table, or about two of one owner that are joined.

    ``server`` is an address such as ``https://example.com/prices``, or a folder; two of them for tables that lie in two places.
    ``owner`` is the name that begins with ``foilpub1``, from a place that you trust. An answer older than ``max_age`` is
    refused. What was seen is remembered in ``state``, else in the state directory of the user: nobody can show anything older
    afterwards. ``timeout`` is how long servers may take in all, ten minutes unless you say otherwise. ``save`` keeps rows
    and proof in a new file, for :func:`check`. ``tls_ca`` names an authority that vouches for
    servers at ``https://`` instead of those that the machine trusts.

    Raises :class:`counterfoil.NotVerified` where rows are not to be trusted; its ``verdict`` says why in a word.
    """
    servers = [server] if isinstance(server, str | os.PathLike) else list(server)
    asked = datetime.datetime.now(datetime.UTC)
    rows, verdict, plan, is_remembered = _counterfoil.ask(
        [os.fspath(server) for server in servers],
        owner,
        sql,
        max_age=_seconds(max_age),
        compact=compact,
        state=None if state is None else os.fspath(state),
        clock_error=_seconds(clock_error),
        timeout=_seconds(timeout),
        save=None if save is None else os.fspath(save),
        tls_ca=None if tls_ca is None else os.fspath(tls_ca),
    )
    if not is_remembered:
        text = "nothing is remembered of what was seen: an older state would not be noticed"
        warnings.warn(Warning(text), stacklevel=2)
    return Answer(rows, _verdict(verdict), sql, plan, asked)


def check(file: str | os.PathLike[str], owner: str, *, clock_error: Span | None = None) -> Answer:
    """Looks at a kept answer again, without a network and without the owner. The verdict is as of when it was asked."""
    rows, verdict, asked, sql = _counterfoil.check(os.fspath(file), owner, clock_error=_seconds(clock_error))
    return Answer(rows, _verdict(verdict), sql, "", _moment(asked))


def _verdict(told: tuple[str, int, int, int]) -> Verdict:
    text, as_of, age, signatures = told
    return Verdict("verified", _moment(as_of), datetime.timedelta(milliseconds=age), signatures, text)


def _moment(milliseconds: int) -> datetime.datetime:
    return _BEGIN + datetime.timedelta(milliseconds=milliseconds)


def _seconds(span: Span | None) -> float | None:
    return span.total_seconds() if isinstance(span, datetime.timedelta) else span
