"""SQLAlchemy's dialect for PostgreSQL, with nothing of ours in it: tables are made, used, and found again.

The environment says where the server is (PGHOST and its kin).
"""

import datetime
import decimal

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owner"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True)
    birds: Mapped[list["Bird"]] = relationship(back_populates="owner")


class Bird(Base):
    __tablename__ = "bird"
    __table_args__ = (sa.CheckConstraint("weight > 0", name="has_weight"), sa.Index("by_seen", "seen"))
    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int | None] = mapped_column(sa.ForeignKey("owner.id"))
    weight: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2))
    seen: Mapped[datetime.datetime | None]
    owner: Mapped[Owner | None] = relationship(back_populates="birds")


def used(engine):
    with Session(engine) as session:
        owner = Owner(name="Ada")
        owner.birds = [Bird(weight=decimal.Decimal(n), seen=datetime.datetime(2024, 1, n)) for n in range(1, 6)]
        session.add(owner)
        session.commit()
        heavy = session.scalars(sa.select(Bird).where(Bird.weight > 3).order_by(Bird.id)).all()
        assert [bird.weight for bird in heavy] == [4, 5] and heavy[0].owner.name == "Ada"
        heavy[0].weight = decimal.Decimal("9.50")
        session.commit()
        assert session.scalar(sa.select(sa.func.sum(Bird.weight))) == decimal.Decimal("20.50")
        streamed = session.execute(sa.select(Bird.id), execution_options={"yield_per": 2}).all()
        assert len(streamed) == 5
        session.add(Owner(name="Ada"))
        try:
            session.commit()
        except sa.exc.IntegrityError:
            session.rollback()
        else:
            raise AssertionError("a name twice")


def found(engine):
    inspector = sa.inspect(engine)
    assert {"owner", "bird"} <= set(inspector.get_table_names())
    columns = {column["name"]: column for column in inspector.get_columns("bird")}
    assert list(columns) == ["id", "owner_id", "weight", "seen"]
    assert isinstance(columns["weight"]["type"], sa.NUMERIC) and columns["weight"]["type"].scale == 2
    assert columns["id"]["nullable"] is False and columns["seen"]["nullable"] is True
    assert inspector.get_pk_constraint("bird")["constrained_columns"] == ["id"]
    (key,) = inspector.get_foreign_keys("bird")
    assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["owner_id"], "owner", ["id"])
    assert "by_seen" in [index["name"] for index in inspector.get_indexes("bird")]
    assert [unique["column_names"] for unique in inspector.get_unique_constraints("owner")] == [["name"]]
    assert [check["name"] for check in inspector.get_check_constraints("bird")] == ["has_weight"]
    again = sa.MetaData()
    again.reflect(engine, only=["owner", "bird"])
    assert again.tables["bird"].c.owner_id.foreign_keys


def main():
    engine = sa.create_engine("postgresql+psycopg://")
    Base.metadata.create_all(engine)
    used(engine)
    found(engine)
    Base.metadata.drop_all(engine)
    assert not {"owner", "bird"} & set(sa.inspect(engine).get_table_names())
    engine.dispose()


main()
