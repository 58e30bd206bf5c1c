"""Choose the rank of a decomposition by the error on held-out entries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arguments import as_generator
from powerkern._input.arrays import as_matrix, is_real
from powerkern._input.messages import shown
from powerkern._typing import FloatArray
from powerkern.completion.decomposition import uv_decompose


class RankProfile(NamedTuple):
    """Errors of decompositions of several ranks, returned by `rank_profile`."""

    #: The ranks tried.
    ranks: NDArray[np.int64]
    #: RMSE of each rank on the fitted entries.
    rmse: FloatArray
    #: RMSE of each rank on the held-out entries.
    validation_rmse: FloatArray
    #: The rank with the smallest validation RMSE.
    best: int
    #: The bend of the validation curve: the rank at which the curve is farthest below the straight line from its first
    #: point to its minimum.
    elbow: int


def rank_profile(
    M: object,
    ranks: Sequence[int] | None = None,
    method: str = "als",
    *,
    validation_fraction: float = 0.1,
    rng: Any = None,
    **options: Any,
) -> RankProfile:
    """Compute the errors of decompositions of several ranks on the same held-out entries.

    Parameters
    ----------
    M : (m, n) array-like
        Real numbers; NaN is missing.
    ranks : sequence of int, optional
        Ranks to try, in increasing order; default: 1 to min(m, n, 10).
    method, validation_fraction, rng, **options
        As in `uv_decompose`.

    Returns
    -------
    RankProfile
        Both `best` and `elbow` are estimates from one random split. If they differ, any rank between them is a
        reasonable choice.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import rank_profile
    >>> rng = np.random.default_rng(0)
    >>> M = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 40)) + 0.1 * rng.normal(size=(80, 40))
    >>> rank_profile(M, rng=0).best
    3
    """
    matrix = as_matrix(M, what="M")
    tried = range(1, min(*matrix.values.shape, 10) + 1) if ranks is None else np.atleast_1d(ranks).tolist()
    if len(tried) == 0 or any(low >= high for low, high in itertools.pairwise(tried)):
        raise ValueError(f"ranks must be increasing whole numbers, got {shown(ranks)}")
    if is_real(validation_fraction) and validation_fraction == 0.0:
        raise ValueError("validation_fraction must be positive: ranks are compared by the error on held-out entries")
    seed = as_generator(rng).integers(2**63)
    options |= {"validation_fraction": validation_fraction, "rng": seed}
    results = [uv_decompose(M, rank, method, **options) for rank in tried]
    errors = np.array([result.validation_rmse for result in results])
    best = int(np.argmin(errors))
    below = np.interp(tried[: best + 1], [tried[0], tried[best]], errors[[0, best]]) - errors[: best + 1]
    bend = int(np.argmax(below)) if below.max() > 0.0 else best
    rmse = np.array([result.rmse for result in results])
    return RankProfile(np.array(tried), rmse, errors, int(tried[best]), int(tried[bend]))
