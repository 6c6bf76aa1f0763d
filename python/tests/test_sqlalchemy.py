"""The dialect of SQLAlchemy, and pandas over it."""

from __future__ import annotations

import datetime
import pathlib
from collections.abc import Iterator
from decimal import Decimal

import pandas
import pytest
import sqlalchemy
from conftest import KEY
from sqlalchemy import Engine, ForeignKey, create_engine, inspect, orm, select


@pytest.fixture
def engine(path: pathlib.Path) -> Iterator[Engine]:
    key_file = path.with_name("engine.key")
    key_file.write_bytes(KEY)
    engine = create_engine(f"counterfoil:///{path}?key_file={key_file}")
    yield engine
    engine.dispose()


def test_a_frame_goes_there_and_back(engine: Engine) -> None:
    frame = pandas.DataFrame(
        {
            "name": ["wren", "owl", None],
            "wings": [2, 2, 0],
            "weight": [9.5, 450.25, float("nan")],
            "seen": pandas.to_datetime(["2024-02-29 12:00", None, "2024-03-01 00:00"]),
            "real": [True, False, True],
        }
    )
    assert frame.to_sql("birds", engine, index=False) == 3
    assert frame.to_sql("birds", engine, index=False, if_exists="append", method="multi") == 3
    with pytest.raises(ValueError, match="already exists"):
        frame.to_sql("birds", engine, index=False)
    back = pandas.read_sql("SELECT * FROM birds LIMIT 3", engine)
    pandas.testing.assert_frame_equal(back, frame, check_dtype=False)
    assert len(pandas.read_sql_table("birds", engine)) == 6
    chunks = list(pandas.read_sql("SELECT * FROM birds", engine, chunksize=4))
    assert [len(chunk) for chunk in chunks] == [4, 2]
    frame.to_sql("birds", engine, if_exists="replace", index_label="number")
    assert list(pandas.read_sql("birds", engine).columns) == ["number", *frame.columns]


class Base(orm.DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sqlalchemy.String(20), unique=True)
    price: orm.Mapped[Decimal] = orm.mapped_column(sqlalchemy.Numeric(8, 2))
    at: orm.Mapped[datetime.datetime] = orm.mapped_column(index=True)


class Line(Base):
    __tablename__ = "lines"
    order: orm.Mapped[int] = orm.mapped_column(ForeignKey("orders.id", ondelete="CASCADE"), primary_key=True)
    number: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    text: orm.Mapped[str | None]


def test_objects(engine: Engine) -> None:
    Base.metadata.create_all(engine)
    at = datetime.datetime(2024, 2, 29)
    with orm.Session(engine) as session:
        orders = [Order(name=f"order {number}", price=Decimal("1.50"), at=at) for number in range(3)]
        session.add_all(orders)
        session.flush()
        assert [order.id for order in orders] == [1, 2, 3]
        session.add(Line(order=orders[0].id, number=1, text="one"))
        session.commit()
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            session.add(Order(name="order 1", price=Decimal(1), at=at))
            session.flush()
        session.rollback()
        with session.begin_nested():
            session.delete(orders[0])
        session.commit()
        found = session.scalars(select(Order).where(Order.price > 1).order_by(Order.id)).all()
        assert [(order.name, order.price, order.at) for order in found] == [
            ("order 1", Decimal("1.50"), at),
            ("order 2", Decimal("1.50"), at),
        ]
        assert session.scalars(select(Line)).all() == []


def test_tables_are_described(engine: Engine) -> None:
    Base.metadata.create_all(engine)
    inspector = inspect(engine)
    assert inspector.get_table_names() == ["lines", "orders"]
    columns = {column["name"]: column for column in inspector.get_columns("orders")}
    assert str(columns["price"]["type"]) == "NUMERIC(8, 2)"
    assert str(columns["name"]["type"]) == "VARCHAR(20)"
    assert not columns["name"]["nullable"]
    assert columns["id"]["identity"] == {"always": False, "start": 1, "increment": 1}
    assert inspector.get_pk_constraint("lines")["constrained_columns"] == ["order", "number"]
    (reference,) = inspector.get_foreign_keys("lines")
    assert (reference["referred_table"], reference["referred_columns"]) == ("orders", ["id"])
    assert reference["options"] == {"ondelete": "CASCADE"}
    assert [unique["column_names"] for unique in inspector.get_unique_constraints("orders")] == [["name"]]
    assert [(index["name"], index["column_names"]) for index in inspector.get_indexes("orders")] == [
        ("ix_orders_at", ["at"])
    ]
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        inspector.get_columns("nowhere")
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    assert set(metadata.tables) == {"lines", "orders"}
    metadata.drop_all(engine)
    assert inspect(engine).get_table_names() == []
    metadata.create_all(engine)
    assert inspect(engine).get_columns("orders")[0]["identity"] == columns["id"]["identity"]


def test_addresses(path: pathlib.Path) -> None:
    memory = create_engine("counterfoil://")
    with memory.connect() as connection:
        assert connection.execute(select(sqlalchemy.literal("wren"))).scalar() == "wren"
    memory.dispose()
    with pytest.raises(sqlalchemy.exc.ArgumentError, match="does not belong into an address"):
        create_engine(f"counterfoil:///{path}?passphrase=secret").connect()
    engine = create_engine(f"counterfoil:///{path}?read_only=true", connect_args={"key": KEY})
    with engine.connect() as connection, pytest.raises(sqlalchemy.exc.ProgrammingError, match="for reading only"):
        connection.execute(sqlalchemy.text("CREATE TABLE t (a INTEGER)"))
    engine.dispose()


def test_constraints_are_those_of_their_table(engine: Engine) -> None:
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE p (x INTEGER, y INTEGER, UNIQUE (x, y))",
            "CREATE TABLE q (z INTEGER PRIMARY KEY)",
            "CREATE TABLE k1 (a INTEGER, b INTEGER, CONSTRAINT f FOREIGN KEY (a, b) REFERENCES p (y, x), "
            "CONSTRAINT c CHECK (a > 1))",
            "CREATE TABLE k2 (a INTEGER, CONSTRAINT f FOREIGN KEY (a) REFERENCES q (z) ON DELETE CASCADE, "
            "CONSTRAINT c CHECK (a < 7))",
        ):
            connection.exec_driver_sql(statement)
    (first,), (second,) = (inspect(engine).get_foreign_keys(table) for table in ("k1", "k2"))
    pairs = dict(zip(first["constrained_columns"], first["referred_columns"]))
    assert (first["referred_table"], pairs, first["options"]) == ("p", {"a": "y", "b": "x"}, {})
    assert (second["referred_table"], second["referred_columns"]) == ("q", ["z"])
    assert second["options"] == {"ondelete": "CASCADE"}
    checks = [inspect(engine).get_check_constraints(table) for table in ("k1", "k2")]
    assert [[check["sqltext"] for check in found] for found in checks] == [["a > 1"], ["a < 7"]]


def test_only_the_type_is_serial(engine: Engine) -> None:
    metadata = sqlalchemy.MetaData()
    said = sqlalchemy.Column("x", sqlalchemy.String(60), server_default="My SERIAL number")
    table = sqlalchemy.Table("t", metadata, sqlalchemy.Column("BIG SERIAL", sqlalchemy.Integer, primary_key=True), said)
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(table.insert().values({"BIG SERIAL": 1}))
        assert connection.execute(select(table.c.x)).scalar() == "My SERIAL number"
