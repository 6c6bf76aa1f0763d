"""Where parameters stand in a statement, and where what looks like one is something else."""

from __future__ import annotations

import decimal

import counterfoil
import pytest


@pytest.mark.parametrize(
    ("sql", "parameters", "answer"),
    [
        ("SELECT ? + ?", [1, 2], (3,)),
        ("SELECT $2 || $1", ["a", "b"], ("ba",)),
        ("SELECT $1::text || $1::text", ["a"], ("aa",)),
        ("SELECT :one::text || :two || :one", {"one": "a", "two": "b"}, ("aba",)),
        ("SELECT '?', ?", ["a"], ("?", "a")),
        ("SELECT 'it''s ?', ?", ["a"], ("it's ?", "a")),
        ("SELECT E'it\\'s ?', ?", ["a"], ("it's ?", "a")),
        ("SELECT E'a''b\\'?', ?", ["a"], ("a'b'?", "a")),
        ('SELECT ? AS "what?"', ["a"], ("a",)),
        ("SELECT $$a ? b$$, ?", ["a"], ("a ? b", "a")),
        ("SELECT $tag$a $$ ? b$tag$, ?", ["a"], ("a $$ ? b", "a")),
        ("SELECT ? -- and not ?\n", ["a"], ("a",)),
        ("SELECT /* ? /* ? */ ? */ ?", ["a"], ("a",)),
        ("SELECT ':one', :one", {"one": "a"}, (":one", "a")),
        ("SELECT 'é?', ?", ["ü"], ("é?", "ü")),
        ("SELECT '?', ':one', '$1'", None, ("?", ":one", "$1")),
        ("SELECT '1'::int + ?", [1], (2,)),
        ("SELECT 1", [], (1,)),
        ("SELECT 1", {}, (1,)),
    ],
)
def test_placeholders(memory: counterfoil.Connection, sql: str, parameters: object, answer: object) -> None:
    assert memory.execute(sql, parameters).fetchone() == answer  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "parameters", "text"),
    [
        ("SELECT ?, ?", [1], "the statement wants 2 parameters, and 1 were given"),
        ("SELECT ?", [1, 2], "the statement wants 1 parameters, and 2 were given"),
        ("SELECT $2", [1], "the statement wants parameter $2, and 1 were given"),
        ("SELECT ?, $1", [1], "the statement has two sorts of parameters"),
        ("SELECT :one", {"two": 2}, "the statement wants parameter :one, which was not given"),
        ("SELECT ?", [[1]], "a value of type list cannot be a parameter"),
        ("SELECT ?", "1", "parameters are a sequence or a mapping of values"),
        ("SELECT ?", b"1", "parameters are a sequence or a mapping of values"),
        ("SELECT ?", 1, "parameters are a sequence or a mapping of values"),
    ],
)
def test_parameters_that_do_not_fit(
    memory: counterfoil.Connection, sql: str, parameters: object, text: str
) -> None:
    with pytest.raises(counterfoil.ProgrammingError) as refused:
        memory.execute(sql, parameters)  # type: ignore[arg-type]
    assert text in str(refused.value)


def test_a_text_is_no_row(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a TEXT, b TEXT)")
    with pytest.raises(counterfoil.Misuse, match="sequence"):
        memory.cursor().executemany("INSERT INTO t VALUES (?, ?)", ["ab"])


def test_numbers_without_end(memory: counterfoil.Connection) -> None:
    for number in (10**38, 10**5000, -(10**5000), decimal.Decimal("1E+38")):
        with pytest.raises(counterfoil.DataError, match="38 digits"):
            memory.execute("SELECT ?", [number])
    for zero in ("0E-50", "0E+50", "-0E-1"):
        assert memory.execute("SELECT ? = 0", [decimal.Decimal(zero)]).fetchone() == (True,)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (?, ?)",
        "INSERT INTO t (a, b) VALUES ($1, $2)",
        "insert into t (a, b) values (?, lower(?)) ;",
        "INSERT INTO t VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = 'again'",
        "INSERT INTO t /* VALUES (?) */ SELECT ?, ?",
    ],
)
def test_many_rows(memory: counterfoil.Connection, sql: str) -> None:
    memory.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    rows = [(number, f"row {number}") for number in range(2500)]
    assert memory.executemany(sql, rows).rowcount == 2500
    assert memory.execute("SELECT * FROM t ORDER BY a").fetchall() == rows


def test_many_rows_by_name(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    rows = [{"b": "x", "a": 1, "other": None}, {"a": 2, "b": None}]
    assert memory.executemany("INSERT INTO t VALUES (:a, :b)", rows).rowcount == 2
    assert memory.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "x"), (2, None)]
    assert memory.executemany("UPDATE t SET b = :b WHERE a = :a", rows).rowcount == 2
    assert memory.executemany("DELETE FROM t WHERE a = ?", [(number,) for number in range(10)]).rowcount == 2


def test_many_rows_one_after_the_other(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    sql = "INSERT INTO t VALUES (?, ?) ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    # One statement may not change a row twice; many may.
    assert memory.executemany(sql, [(1, "x"), (1, "y"), (2, "z")]).rowcount == 3
    assert memory.execute("SELECT * FROM t ORDER BY a").fetchall() == [(1, "y"), (2, "z")]


def test_many_rows_are_all_or_none(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    for sql in ("INSERT INTO t VALUES (?)", "INSERT INTO t SELECT ?"):
        with pytest.raises(counterfoil.IntegrityError):
            memory.executemany(sql, [(1,), (2,), (1,)])
        assert memory.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert memory.executemany("INSERT INTO t VALUES (?)", []).rowcount == 0
    with pytest.raises(counterfoil.ProgrammingError, match="answers rows"):
        memory.executemany("SELECT ?", [(1,)])


def test_rows_of_many_shapes(memory: counterfoil.Connection) -> None:
    memory.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    with pytest.raises(counterfoil.ProgrammingError, match="wants 2 parameters"):
        memory.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2,)])
    with pytest.raises(counterfoil.ProgrammingError, match="some rows of parameters are mappings"):
        memory.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), {"a": 1}])
    memory.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, 3), (None, None)])
    assert memory.execute("SELECT b FROM t WHERE a = 2").fetchone() == ("3",)
