"""Complete matrices with missing entries by UV decomposition, and predict ratings."""

from __future__ import annotations

from powerkern._input.messages import suggest_keywords
from powerkern.completion.decomposition import UVDecomposition, complete_by_average, uv_decompose
from powerkern.completion.rank import RankProfile, rank_profile
from powerkern.completion.ratings import RatingModel, fit_ratings

__all__ = [
    "RankProfile",
    "RatingModel",
    "UVDecomposition",
    "complete_by_average",
    "fit_ratings",
    "rank_profile",
    "uv_decompose",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
