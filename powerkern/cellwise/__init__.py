"""Outlying cells: wrapping, robust correlations and principal components of many columns, cells that deviate.

Only the estimators `DDC` and `Wrapper` need scikit-learn, which is imported when they are first used.
"""

from __future__ import annotations

from powerkern.cellwise.components import WrappedPCA, wrapped_pca
from powerkern.cellwise.wrapping import (
    WrapConstants,
    Wrapped,
    wrap,
    wrap_constants,
    wrapped_correlation,
    wrapped_covariance,
)

__all__ = [
    "WrapConstants",
    "Wrapped",
    "WrappedPCA",
    "wrap",
    "wrap_constants",
    "wrapped_correlation",
    "wrapped_covariance",
    "wrapped_pca",
]
