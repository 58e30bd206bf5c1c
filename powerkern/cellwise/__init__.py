"""Methods for outlying cells: detection, wrapping, and robust correlations and principal components of many columns."""

from __future__ import annotations

from powerkern._input.messages import suggest_keywords
from powerkern.cellwise.cells import DDCFit, ddc
from powerkern.cellwise.checking import check_data
from powerkern.cellwise.components import WrappedPCA, wrapped_pca
from powerkern.cellwise.wrapping import wrap, wrapped_correlation, wrapped_covariance

__all__ = [
    "DDCFit",
    "WrappedPCA",
    "check_data",
    "ddc",
    "wrap",
    "wrapped_correlation",
    "wrapped_covariance",
    "wrapped_pca",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
