"""Rows as Arrow tables and data frames. None of these packages is needed for anything else."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, cast

from ._counterfoil import Rows

if TYPE_CHECKING:
    import pandas as _pandas
    import polars as _polars
    import pyarrow as _pyarrow


def _package(name: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        text = f"this needs {name}, which is not installed: pip install 'counterfoil[{extra}]'"
        raise ImportError(text, name=name) from missing


class Frames:
    """What cursors and results have in common: rows that are taken once, by one of these methods.

    They give an Arrow stream too (``__arrow_c_stream__``), so whatever reads such streams takes them as they are.
    """

    def _rows(self) -> Rows:
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream."""
        return self._rows().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns, as Arrow has them."""
        return self._rows().__arrow_c_schema__()

    def arrow(self) -> _pyarrow.Table:
        """The rows as a table of pyarrow.

        >>> import counterfoil
        >>> connection = counterfoil.connect(":memory:")
        >>> connection.execute("SELECT 1 AS one, 'x' AS letter").arrow().to_pylist()
        [{'one': 1, 'letter': 'x'}]
        """
        pyarrow = _package("pyarrow", "arrow")
        rows = self._rows()
        try:
            return pyarrow.table(rows)
        except Exception:
            # Readers of streams have exceptions of their own: ours says the kind.
            rows.check()
            raise

    def reader(self) -> _pyarrow.RecordBatchReader:
        """The rows as a reader of pyarrow, batch by batch: for results that are larger than memory."""
        return _package("pyarrow", "arrow").RecordBatchReader.from_stream(self._rows())

    def df(self) -> _pandas.DataFrame:
        """The rows as a data frame of pandas.

        >>> import counterfoil
        >>> connection = counterfoil.connect(":memory:")
        >>> print(connection.execute("SELECT 1 AS one, 'x' AS letter").df())
           one letter
        0    1      x
        """
        _package("pandas", "pandas")
        return self.arrow().to_pandas()

    def pl(self) -> _polars.DataFrame:
        """The rows as a data frame of polars.

        >>> import counterfoil
        >>> connection = counterfoil.connect(":memory:")
        >>> connection.execute("SELECT 1 AS one, 'x' AS letter").pl().rows()
        [(1, 'x')]
        """
        polars = _package("polars", "polars")
        rows = self._rows()
        try:
            return cast("_polars.DataFrame", polars.DataFrame(rows))
        except Exception:
            rows.check()
            raise


class Result(Frames):
    """Rows that no cursor holds: what a series answers. Iterating gives tuples."""

    def __init__(self, rows: Rows) -> None:
        self.__rows = rows

    def _rows(self) -> Rows:
        return self.__rows

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [column[0] for column in self.__rows.columns()]

    def fetchall(self) -> list[tuple[object, ...]]:
        """All rows that were not taken yet."""
        return self.__rows.fetch()

    def __iter__(self) -> Result:
        return self

    def __next__(self) -> tuple[object, ...]:
        rows = self.__rows.fetch(1)
        if not rows:
            raise StopIteration
        return rows[0]
