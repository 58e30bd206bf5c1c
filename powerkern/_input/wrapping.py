"""Recognise data frames and series of any library."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerkern._input.foreign import find_refusal, library
from powerkern._input.frame import Frame
from powerkern._input.pandas_frame import PandasFrame

#: Libraries whose objects are not data frames; narwhals is not imported for them.
_WITHOUT_FRAMES = frozenset(("builtins", "numpy", "scipy", "sparse", "xarray", "torch", "jax", "jaxlib", "array"))


def as_frame(X: Any) -> Frame | None:
    """Return a data frame or series in memory as a `Frame`, or None if X is anything else."""
    if type(X) is np.ndarray:
        return None
    if isinstance(X, Frame):
        return X
    if library(X) == "pandas":
        return PandasFrame(X) if hasattr(X, "to_numpy") else None
    root = type(X).__module__.partition(".")[0]
    if root in _WITHOUT_FRAMES or find_refusal(X) is not None:
        return None
    from powerkern._input.narwhals_frame import wrap_by_narwhals

    return wrap_by_narwhals(X)


def unwrap(X: Any) -> Any:
    """Return the data that a `Frame` wraps, or any other object unchanged."""
    return X.native if isinstance(X, Frame) else X


def as_plain(X: Any) -> Any:
    """Return a data frame or series as an object of its own library, see `Frame.plain`; anything else unchanged."""
    frame = as_frame(X)
    return X if frame is None else frame.plain


def loaded(X: Any) -> Any:
    """Return X in a form that can be read repeatedly: a stream of Arrow data as a table, anything else unchanged."""
    frame = as_frame(X)
    return X if frame is None else frame.native
