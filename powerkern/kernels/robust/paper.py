"""The paper's equations as printed ([1]_), one short function each.

They define the results of the fast forms, which use sorted columns, accept weights, and may evaluate many lambdas at
once. Tests compare the fast forms with the functions in this module in every regime:

=============================== ===================================================================================
`qq.rho`                        `powerkern.kernels.robust.qq.nearness`: 1 - rho of a square, without branches
`huber_psi`, `huber_one_step`   `powerkern.kernels.location.huber.nonempty_one_step`: medians by lookup, with weights
`qq_objective`                  `powerkern.kernels.robust.qq_column.qq_value`, and `qq_lanes` at eight lambdas at once
`outlier_weights`               `powerkern.kernels.robust.reweighting.within_cutoff`: the values kept are consecutive
=============================== ===================================================================================

References
----------
.. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
   4953-4975.
"""

from __future__ import annotations

import math

import numpy as np

from powerkern._jit import kernel
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import HUBER_K, huber_beta
from powerkern.kernels.location.loc_scale import MAD_FACTOR
from powerkern.kernels.robust.qq import C, normal_scores, rho
from powerkern.kernels.transforms.rectified import (
    rectified_boxcox,
    rectified_yeojohnson,
    tail_rank,
)


@kernel
def huber_psi(u: float, k: float = HUBER_K) -> float:
    """Return Huber's psi of a residual in units of the scale, ``max(-k, min(k, u))``."""
    return max(-k, min(k, u))


@kernel
def huber_one_step(y: FloatArray, k: float = HUBER_K) -> tuple[float, float]:
    """Return Huber's location and scale after one reweighting step from median and MAD.

    The scale is 0 if the MAD about the median, or about the new location, is 0.

    Parameters
    ----------
    y : (n,)
        The values, in any order.
    k : float, default 1.5
        Distance beyond which values are clipped, in units of the scale.
    """
    median = float(np.median(y))
    s0 = MAD_FACTOR * float(np.median(np.abs(y - median)))
    if not s0 > 0.0:
        return median, 0.0
    total, weight = 0.0, 0.0
    for value in y:
        u = (value - median) / s0
        w = huber_psi(u, k) / u if u != 0.0 else 1.0
        total, weight = total + w * (value - median), weight + w
    loc = float(median + total / weight)
    s1 = MAD_FACTOR * float(np.median(np.abs(y - loc)))
    if not s1 > 0.0:
        return loc, 0.0
    squares = 0.0
    for value in y:
        squares += huber_psi((value - loc) / s1, k) ** 2
    return loc, float(s1 * math.sqrt(squares / y.size / huber_beta(k)))


@kernel
def qq_objective(u: FloatArray, lmbda: float, mirrored: bool = True, c: float = C) -> float:
    """Return the mean of `rho` over the distances of standardised values from their normal scores.

    This is the objective of [1]_, eq. (5), divided by n. The initial lambda of RewML minimises it.

    Parameters
    ----------
    u : (n,)
        The prestandardised values, ascending.
    lmbda : float
        The power.
    mirrored : bool, default True
        True for Yeo-Johnson ([1]_, eq. (2)), False for Box-Cox ([1]_, eq. (1)). The transform is rectified beyond the
        quartiles.
    c : float, default 0.5
        The constant of `rho`.
    """
    n, y, scores = u.size, np.empty(u.size), np.empty(u.size)
    # the rectified transform of [1]_, with the first and the third quartile as change points
    lower, upper = u[tail_rank(n, 0.25)], u[n - 1 - tail_rank(n, 0.25)]
    for i in range(n):
        y[i] = (
            rectified_yeojohnson(u[i], lmbda, lower, upper) if mirrored else rectified_boxcox(u[i], lmbda, lower, upper)
        )
    # the M-estimates of location and scale of [1]_
    loc, scale = huber_one_step(y)
    normal_scores(scores)
    # [1]_, eq. (5)
    total = 0.0
    for i in range(n):
        total += rho((y[i] - loc) / scale - scores[i], c)
    return float(total / n)


@kernel
def outlier_weights(y: FloatArray, loc: float, scale: float, cutoff: float) -> FloatArray:
    """Return the weights of [1]_, eq. (16): 1 if ``abs(y - loc) <= cutoff scale``, and 0 otherwise.

    Parameters
    ----------
    y : (n,)
        The transformed values, ascending.
    loc : float
        Location of the transformed values.
    scale : float
        Scale of the transformed values.
    cutoff : float
        The largest distance of a kept value from the location, in units of the scale.
    """
    weights = np.empty(y.size)
    # [1]_, eq. (16)
    for i in range(y.size):
        weights[i] = 1.0 if abs(y[i] - loc) <= cutoff * scale else 0.0
    return weights
