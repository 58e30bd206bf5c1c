"""Outlying cells: deviating cells, wrapping, robust correlations and principal components of many columns.

Only the estimators `DDC` and `Wrapper` need scikit-learn, which is imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used
from powerkern._input.messages import suggest_keywords
from powerkern.cellwise.cells import Cells, DDCFit, ddc
from powerkern.cellwise.checking import DataCheck, check_data
from powerkern.cellwise.components import WrappedPCA, wrapped_pca
from powerkern.cellwise.constants import WrapConstants, wrap_constants
from powerkern.cellwise.neighbors import Neighbors
from powerkern.cellwise.wrapping import Wrapped, wrap, wrapped_correlation, wrapped_covariance

if TYPE_CHECKING:
    from powerkern.sklearn.cellwise import DDC as DDC
    from powerkern.sklearn.cellwise import Wrapper as Wrapper

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

__getattr__, __dir__ = imported_when_used(
    __name__, {"DDC": "powerkern.sklearn.cellwise", "Wrapper": "powerkern.sklearn.cellwise"}, __all__
)

suggest_keywords(globals(), __all__)
