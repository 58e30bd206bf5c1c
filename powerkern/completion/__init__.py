"""Completion of matrices with missing entries: UV decomposition, an imputer, models of ratings.

`UVImputer` needs scikit-learn, which is imported when that name is first used; the rest does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used
from powerkern._input.messages import suggest_keywords
from powerkern.completion.decomposition import UVDecomposition, complete_by_average, uv_decompose
from powerkern.completion.rank import RankProfile, rank_profile
from powerkern.completion.ratings import FoldedRow, RatingModel, fit_ratings

if TYPE_CHECKING:
    from powerkern.sklearn.imputer import UVImputer as UVImputer

__all__ = [
    "FoldedRow",
    "RankProfile",
    "RatingModel",
    "UVDecomposition",
    "UVImputer",
    "complete_by_average",
    "fit_ratings",
    "rank_profile",
    "uv_decompose",
]

__getattr__, __dir__ = imported_when_used(__name__, {"UVImputer": "powerkern.sklearn.imputer"}, __all__)

suggest_keywords(globals(), __all__)
