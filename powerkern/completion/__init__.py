"""Matrices with missing entries: UV decomposition, and an imputer that uses it, and ratings.

`uv_decompose`, `rank_profile` and `fit_ratings` need nothing beyond powerkern itself; `UVImputer` needs scikit-learn,
which is imported when that name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used
from powerkern.completion.decomposition import RankProfile, UVDecomposition, rank_profile, uv_decompose
from powerkern.completion.ratings import FoldedRow, RatingModel, Recommended, fit_ratings

if TYPE_CHECKING:
    from powerkern.sklearn.imputer import UVImputer as UVImputer

__all__ = [
    "FoldedRow",
    "RankProfile",
    "RatingModel",
    "Recommended",
    "UVDecomposition",
    "UVImputer",
    "fit_ratings",
    "rank_profile",
    "uv_decompose",
]

__getattr__ = imported_when_used(__name__, {"UVImputer": "powerkern.sklearn.imputer"})
