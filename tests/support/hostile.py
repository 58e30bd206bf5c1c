"""Hostile arguments (`VALUES`), and a check that functions reject them with a documented error or return."""

from __future__ import annotations

import datetime
import random
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats._axis_nan_policy import SmallSampleWarning

pd, pl, pa = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("pyarrow")
sparse = pytest.importorskip("scipy.sparse")

N = 12
RNG = np.random.default_rng(20261123)
X = RNG.lognormal(size=(N, 3))
Y = np.arange(N) % 2
DAYS = [datetime.date(2020, 1, i + 1) for i in range(N)]
WORDS = [str(i) for i in range(N)]
P = np.clip(RNG.uniform(size=(N, 3)), 0.01, 0.99)

#: The arguments; a function makes a new one if calls use it up or write to it.
VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "2": 2,
    "1e400": float("inf"),
    "nan": float("nan"),
    "0.5": 0.5,
    "1j": 1j,
    "10**400": 10**400,
    "decimal": Decimal("1.5"),
    "fraction": Fraction(1, 3),
    "": "",
    "word": "mean",
    "bytes": b"12",
    "dict": {"a": 1},
    "set": {1, 2},
    "empty list": [],
    "list of an empty list": [[]],
    "ragged": [[1.0, 2.0], [3.0]],
    "ragged below": [[1, [2, 3]], [4, 5]],
    "list of words": WORDS,
    "range": range(N),
    "list of None": [None] * N,
    "list of huge": [10**400] * N,
    "nested": [[[1.0]]],
    "generator": lambda: iter(WORDS),
    "function": lambda: len,
    "type": lambda: int,
    "date": DAYS[0],
    "object": object(),
    "matrix": X,
    "one row": X[:1],
    "no rows": X[:0],
    "no columns": X[:, :0],
    "column": X[:, :1],
    "vector": X[:, 0],
    "short vector": X[:5, 0],
    "3-D": X[None],
    "0-d": np.array(1.0),
    "with NaN": np.where(X > 1.0, np.nan, X),
    "all NaN": X * np.nan,
    "with inf": np.where(X > 2.0, np.inf, X),
    "negative": -X,
    "zeros": X * 0.0,
    "constant": X * 0.0 + 7.0,
    "huge": X * 1e305,
    "tiny": X * 1e-310,
    "integers": (X * 10).astype(np.int64),
    "wide integers": np.full((N, 3), 2**63, dtype=np.uint64),
    "booleans": X > 1.0,
    "float16": X.astype(np.float16),
    "longdouble": X.astype(np.longdouble),
    "big endian": X.astype(">f8"),
    "complex": X + 1j,
    "fortran": np.asfortranarray(X),
    "reversed": X[::-1, ::-1],
    "read only": lambda: _frozen(X),
    "text": np.array(WORDS),
    "byte strings": np.array(WORDS, dtype="S"),
    "datetimes": np.array(DAYS, dtype="M8[D]"),
    "objects": np.array(WORDS, dtype=object),
    "objects of numbers": X.astype(object),
    "dates as objects": np.array(DAYS, dtype=object),
    "durations": np.arange(N).astype("m8[s]"),
    "structured": np.zeros(N, dtype=[("a", float), ("b", int)]),
    "void": np.zeros(N, dtype="V8"),
    "masked": np.ma.array(X, mask=X > 1.0),
    "masked vector": np.ma.array(X[:, 0], mask=X[:, 0] > 1.0),
    "all masked": np.ma.array(X, mask=True),
    "masked integers": np.ma.array(np.arange(N), mask=np.arange(N) < 2),
    "np.ma.masked": np.ma.masked,
    "memoryview": lambda: memoryview(X),
    "memoryview of a vector": lambda: memoryview(X[0]),
    "np.matrix": lambda: X.view(np.matrix),
    "sparse": sparse.csr_matrix(X),
    "sparse array": sparse.coo_array(X),
    "pandas": pd.DataFrame(X, columns=list("abc")),
    "pandas of mixed types": pd.DataFrame({"a": X[:, 0], "b": WORDS}),
    "pandas, empty": pd.DataFrame(),
    "pandas, no rows": pd.DataFrame(X[:0], columns=list("abc")),
    "pandas, same names": pd.DataFrame(X, columns=list("aab")),
    "pandas, numbers as names": pd.DataFrame(X),
    "pandas series": pd.Series(X[:, 0], name="a"),
    "pandas index": pd.Index(X[:, 0]),
    "pandas dates": pd.Series(DAYS),
    "pandas times": pd.DataFrame({"a": pd.to_datetime(DAYS)}),
    "pandas categories": pd.Series(WORDS, dtype="category"),
    "pandas nullable": pd.DataFrame({"a": pd.array([1, None] * (N // 2), dtype="Int64")}),
    "pandas periods": pd.Series(pd.period_range("2020", periods=N)),
    "pandas multi-index": pd.MultiIndex.from_product([[1], [2]]),
    "pandas intervals": pd.Series(pd.interval_range(0, N)),
    "pandas sparse": pd.DataFrame(X).astype("Sparse[float]"),
    "polars": pl.DataFrame(X, schema=list("abc")),
    "polars, no rows": pl.DataFrame(X, schema=list("abc")).clear(),
    "polars, empty": pl.DataFrame(),
    "polars of words": pl.DataFrame({"a": WORDS, "b": X[:, 0]}),
    "polars series": pl.Series("a", X[:, 0]),
    "polars dates": pl.DataFrame({"a": DAYS}),
    "polars durations": pl.Series([datetime.timedelta(i) for i in range(N)]),
    "polars nulls": pl.DataFrame({"a": [None] * N}),
    "polars lists": pl.Series([[1.0, 2.0]] * N),
    "polars lazy": pl.DataFrame(X, schema=list("abc")).lazy(),
    "polars decimals": pl.Series([Decimal(i) for i in range(N)]),
    "polars categories": pl.Series(WORDS, dtype=pl.Categorical),
    "arrow table": pa.table({"a": X[:, 0], "b": WORDS}),
    "arrow array": pa.array(X[:, 0]),
    "arrow, no columns": pa.table({}),
    "arrow nulls": pa.nulls(N),
    "arrow dictionary": pa.array(WORDS).dictionary_encode(),
}


def _frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


#: Number of values tried for each function.
EACH = 24


def new(value: str) -> Any:
    made = VALUES[value]
    return made() if callable(made) else made


def outcome(name: str, call: Callable[[Any], Any], value: str) -> str | None:
    """Call `call` with one of the VALUES; return a description of the fault, or None if there is none.

    A result, or a documented error with a message, is no fault.

    Parameters
    ----------
    name : str
        Name of the call in descriptions.
    call : callable
        Takes the value.
    value : str
        Key of VALUES.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", SmallSampleWarning)  # SciPy's functions warn likewise
        warnings.filterwarnings("ignore", message="More than 20 figures")
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"numpy\.|sklearn\."
        )  # of a classifier's variances
        try:
            call(new(value))
        except (TypeError, ValueError, ImportError, OSError) as error:
            if isinstance(error, OSError) and not name.startswith("load:"):
                return f"{name} of {value}: {type(error).__name__}: {error}"
            return None if str(error).strip() else f"{name} of {value}: {type(error).__name__} without a word"
        except Exception as error:
            return f"{name} of {value}: {type(error).__name__}: {error}"
    return None


def faults(name: str, call: Callable[[Any], Any]) -> list[str]:
    """Call `call` with some of the VALUES, selected by `name`; return descriptions of all faults."""
    rng = random.Random(f"2026 {name}")
    found = [outcome(name, call, value) for value in rng.sample(sorted(VALUES), EACH)]
    return [one for one in found if one]
