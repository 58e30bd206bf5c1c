"""The paper's equations as they are printed ([1]_), one short function each.

They say what the fast forms compute, which work on sorted columns, with weights, at many lambdas at once or without
leaving registers, and which tests compare with them in every regime:

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
import numpy.typing as npt

from powerkern._jit import compiled_as, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.location.huber import HUBER_K, huber_beta
from powerkern.kernels.location.loc_scale import MAD_FACTOR
from powerkern.kernels.plain_arguments import as_real, as_vector
from powerkern.kernels.robust.qq import C, normal_scores, rho
from powerkern.kernels.transforms.rectified import (
    rectified_boxcox,
    rectified_yeojohnson,
    tail_rank,
)


@kernel
def _huber_psi(u: float, k: float = HUBER_K) -> float:
    return max(-k, min(k, u))


@compiled_as(_huber_psi)
def huber_psi(u: float, k: float = HUBER_K) -> float:
    """Return Huber's psi, ``max(-k, min(k, u))``.

    Parameters
    ----------
    u : float
        A residual, in units of the scale.
    k : float, default 1.5
        Where residuals begin to be clipped.

    Returns
    -------
    float
        The clipped residual.

    See Also
    --------
    huber_one_step : location and scale with this psi.

    Examples
    --------
    >>> from powerkern.kernels import huber_psi
    >>> huber_psi(-0.7), huber_psi(9.0)
    (-0.7, 1.5)
    """
    return _huber_psi(as_real("u", u), as_real("k", k))


@kernel
def _huber_one_step(y: FloatArray, k: float = HUBER_K) -> tuple[float, float]:
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


@compiled_as(_huber_one_step)
def huber_one_step(y: npt.ArrayLike, k: float = HUBER_K) -> tuple[float, float]:
    """Return one reweighting step of Huber's location and scale from median and MAD.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, in any order.
    k : float, default 1.5
        Where values begin to be clipped, in scales.

    Returns
    -------
    loc, scale : float
        Location mu and scale s; the scale is 0 where the MAD about the median, or about mu, is 0.

    See Also
    --------
    huber_psi : the psi.
    huber_location, huber_proposal2 : the same estimating equations, solved.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.kernels import huber_one_step
    >>> loc, scale = huber_one_step(np.array([-1.0, 0.0, 1.0, 2.0, 1000.0]))
    >>> round(loc, 4), round(scale, 4)
    (1.0559, 1.7375)
    """
    values, k = as_vector("y", y), as_real("k", k)
    with np.errstate(all="ignore"):  # NumPy's numbers warn where machine code gives inf or NaN
        return _huber_one_step(values, k)


@kernel
def _qq_objective(u: FloatArray, lmbda: float, mirrored: bool = True, c: float = C) -> float:
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


@compiled_as(_qq_objective)
def qq_objective(u: npt.ArrayLike, lmbda: float, mirrored: bool = True, c: float = C) -> float:
    """Return the mean of `rho` that RewML's initial lambda minimises: the objective of [1]_, eq. (5), divided by n.

    Parameters
    ----------
    u : ndarray of float64, shape (n,)
        The prestandardised values, ascending.
    lmbda : float
        Where to evaluate it.
    mirrored : bool, default True
        True for Yeo-Johnson ([1]_, eq. (2)), False for Box-Cox ([1]_, eq. (1)), rectified beyond the quartiles.
    c : float, default 0.5
        The constant of `rho`.

    Returns
    -------
    float
        The objective, from 0 to 1.

    See Also
    --------
    rho, huber_one_step : what it is made of.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.kernels import qq_objective
    >>> u = np.array([-1.2, -0.6, -0.1, 0.1, 0.6, 1.2, 30.0])
    >>> qq_objective(u, 1.0) < qq_objective(u, 0.0)
    True
    """
    values, lmbda, c = as_vector("u", u), as_real("lmbda", lmbda), as_real("c", c)
    with np.errstate(all="ignore"):
        return _qq_objective(values, lmbda, mirrored, c)


@kernel
def outlier_weights(y: FloatArray, loc: float, scale: float, cutoff: float) -> FloatArray:
    """Return the weights of [1]_, eq. (16): 1 for ``abs(y - loc) <= cutoff scale``, else 0.

    Parameters
    ----------
    y : ndarray of float64, shape (n,)
        The values, ascending.
    loc : float
        Their location.
    scale : float
        Their scale.
    cutoff : float
        The largest distance from the location, in scales, of a value that is kept.
    """
    weights = np.empty(y.size)
    # [1]_, eq. (16)
    for i in range(y.size):
        weights[i] = 1.0 if abs(y[i] - loc) <= cutoff * scale else 0.0
    return weights
