"""Matrices with missing entries: UV decomposition, and an imputer that uses it, and ratings.

`uv_decompose`, `rank_profile` and `fit_ratings` need nothing beyond powerkern itself; `UVImputer` needs scikit-learn,
which is imported when that name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from powerkern.completion.decomposition import UVDecomposition, uv_decompose
from powerkern.completion.rank import RankProfile, rank_profile
from powerkern.completion.ratings import FoldedRow, RatingModel, fit_ratings

if TYPE_CHECKING:
    from powerkern.completion.imputer import UVImputer as UVImputer

__all__ = [
    "FoldedRow",
    "RankProfile",
    "RatingModel",
    "UVDecomposition",
    "UVImputer",
    "fit_ratings",
    "rank_profile",
    "uv_decompose",
]


def __getattr__(name: str) -> Any:
    """`UVImputer`, imported when asked for."""
    if name != "UVImputer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from powerkern.completion.imputer import UVImputer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise ImportError("UVImputer needs scikit-learn: pip install 'powerkern[sklearn]'") from None
    return UVImputer
