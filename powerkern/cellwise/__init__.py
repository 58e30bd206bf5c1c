"""Outlying cells: wrapping, robust correlations and principal components of many columns, cells that deviate.

Only the estimators `DDC` and `Wrapper` need scikit-learn, which is imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from powerkern.cellwise.cells import Cells, DDCFit, Neighbors, ddc
from powerkern.cellwise.checking import DataCheck, check_data
from powerkern.cellwise.components import WrappedPCA, wrapped_pca
from powerkern.cellwise.wrapping import (
    WrapConstants,
    Wrapped,
    wrap,
    wrap_constants,
    wrapped_correlation,
    wrapped_covariance,
)

if TYPE_CHECKING:
    from powerkern.cellwise.estimators import DDC as DDC
    from powerkern.cellwise.estimators import Wrapper as Wrapper

__all__ = [
    "DDC",
    "Cells",
    "DDCFit",
    "DataCheck",
    "Neighbors",
    "WrapConstants",
    "Wrapped",
    "WrappedPCA",
    "Wrapper",
    "check_data",
    "ddc",
    "wrap",
    "wrap_constants",
    "wrapped_correlation",
    "wrapped_covariance",
    "wrapped_pca",
]


def __getattr__(name: str) -> Any:
    """The estimators, imported when asked for."""
    if name not in ("DDC", "Wrapper"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from powerkern.cellwise import estimators
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise ImportError(f"{name} needs scikit-learn: pip install 'powerkern[sklearn]'") from None
    return getattr(estimators, name)
