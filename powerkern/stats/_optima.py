"""Optimal lambdas by maximum likelihood, by probability plot correlation or by a user's optimizer, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import optimize, special

from powerkern._engine.one_column import interval_vector, nll_vector
from powerkern._estimators.plotting_positions import normal_quantiles, sort_and_weigh
from powerkern._estimators.routes import fit_vector
from powerkern._input.messages import warn
from powerkern._typing import FloatArray
from powerkern.kernels.normality.ppcc import ppcc_objective_columns
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.kernels.transforms.lambda_bounds import lambda_ranges
from powerkern.stats._arrays import FLOAT32, FLOAT64, as_scalar

#: Factor by which SciPy keeps transformed data below the largest number.
SAFETY = 1e4
#: Largest magnitude of transformed data of each type, and the message if it is exceeded.
OVERFLOW = {dtype: (float(np.finfo(dtype).max) / SAFETY, f"overflow in {dtype.name}.") for dtype in (FLOAT32, FLOAT64)}


def negative_llf(column: FloatArray, family: int) -> Callable[[Any], float]:
    """Return a function of lambda: the negative log-likelihood of the column; `family` is the code of the family."""

    def objective(lmbda: Any) -> float:
        return float(column.size * nll_vector(column, family, np.array([as_scalar(lmbda)]))[0])

    return objective


def maximum_likelihood(
    column: FloatArray, family: int, brack: Sequence[float] | None, optimizer: Callable[..., Any] | None
) -> np.float64:
    """Return the maximum likelihood lambda, computed by the user's optimizer if there is one.

    Parameters
    ----------
    column : (n,) ndarray
        The data.
    family : int
        A code of `kernels.transforms.family`.
    brack : sequence of float or None
        Initial points, which are only checked.
    optimizer : callable or None
        The user's optimizer; see `powerkern.stats.boxcox`.
    """
    if optimizer is not None:
        return _user_optimum(optimizer, negative_llf(column, family))
    if brack is not None:
        _check_brack(brack, negative_llf(column, family))
    return np.float64(fit_vector(column, family).lmbda)


def _user_optimum(optimizer: Callable[..., Any], objective: Callable[[Any], float]) -> np.float64:
    """Call the user's optimizer for a function of lambda, and return the optimum; raise an error if there is none."""
    if not callable(optimizer):
        raise ValueError("`optimizer` must be a callable")
    optimum = getattr(optimizer(objective), "x", None)
    if optimum is None:
        raise ValueError(
            "The `optimizer` argument of `boxcox_normmax` must return an object containing the optimal `lmbda` in "
            "attribute `x`."
        )
    return np.float64(as_scalar(optimum))


def _check_brack(brack: Sequence[float], objective: Callable[[Any], float]) -> None:
    """Raise an error for a bracket that `scipy.optimize.brent` would reject before minimising `objective`."""
    if len(brack) not in (2, 3):
        raise ValueError("Bracketing interval must be length 2 or 3 sequence.")
    brack = [as_scalar(lmbda, "brack") for lmbda in brack]
    values = [objective(lmbda) for lmbda in brack]
    if len(brack) == 2:
        return
    requirement = "Bracketing values (xa, xb, xc) do not fulfill this requirement: "
    if not min(brack[0], brack[2]) < brack[1] < max(brack[0], brack[2]):
        raise ValueError(requirement + "(xa < xb) and (xb < xc)")
    if not values[1] < min(values[0], values[2]):
        raise ValueError(requirement + "(f(xb) < f(xa)) and (f(xb) < f(xc))")


def best_correlation(
    column: FloatArray, brack: Sequence[float] | None, optimizer: Callable[..., Any] | None
) -> np.float64:
    """Return the Box-Cox lambda with the largest correlation in the normal probability plot.

    `brack` and `optimizer` are as in `powerkern.stats.boxcox_normmax`.
    """
    x = np.sort(column)
    one_minus = _one_minus_correlations(x, BOX_COX)

    def objective(lmbda: Any) -> float:
        return float(one_minus(np.array([as_scalar(lmbda)]))[0])

    if optimizer is not None:
        return _user_optimum(optimizer, objective)
    if np.count_nonzero(np.diff(x)) < 2:  # two distinct values lie on a straight line for every lambda
        return np.float64(1.0)
    if brack is None:  # exponents that change the shape of the data without collapsing it
        reach = 5.0 / _log_range(x)
        brack = (-reach, reach)
    return np.float64(optimize.brent(objective, brack=brack))


def correlations(column: FloatArray, family: int, lambdas: FloatArray) -> FloatArray:
    """Return the correlation of the sorted transformed column with normal quantiles at each of the `lambdas`, (k,)."""
    return 1.0 - _one_minus_correlations(np.sort(column), family)(lambdas)


def _one_minus_correlations(x: FloatArray, family: int) -> Callable[[FloatArray], FloatArray]:
    """Return a function of lambdas, (k,): one minus the correlation of the transforms of `x` with normal quantiles.

    `x` is in ascending order.
    """
    columns, positions, totals = sort_and_weigh(x[np.newaxis].copy(), None, normal_quantiles)
    work = np.empty((2, x.size))

    def one_minus_correlations(lambdas: FloatArray) -> FloatArray:
        out: FloatArray = np.empty((1, lambdas.size))
        ppcc_objective_columns(columns, positions, totals, family, lambdas, work, out)
        return np.asarray(out[0])

    return one_minus_correlations


def _log_range(x: FloatArray) -> float:
    """Return ``ln(x[-1]/x[0])`` for ascending positive values, without cancellation."""
    if x[-1] < 2.0 * x[0]:
        return math.log1p((x[-1] - x[0]) / x[0])
    return math.log(x[-1]) - math.log(x[0])


def likelihood_interval(column: FloatArray, lmbda: float, alpha: float) -> tuple[float, float]:
    """Return the lambdas at which the log-likelihood is chi2(1 - alpha, 1)/2 below its value at `lmbda`.

    `lmbda` need not be the optimum.
    """
    if not 0.0 <= alpha <= 1.0:
        raise ValueError("`alpha` must be between 0 and 1.")
    if alpha == 0.0:
        return -math.inf, math.inf
    drop = 0.5 * float(special.chdtri(1, alpha)) / column.size
    return interval_vector(column, BOX_COX, lmbda, drop) if drop > 0.0 else (float(lmbda), float(lmbda))


def lambda_range(family: int, low: float, high: float, ymax: float) -> tuple[float, float]:
    """Return the interval of lambdas whose transforms of [`low`, `high`] stay within ``[-ymax, ymax]``.

    Parameters
    ----------
    family : int
        A code of `kernels.transforms.family`.
    low, high : float
        Range of the data.
    ymax : float
        Largest allowed magnitude of the transformed data.
    """
    lower, upper = np.empty((2, 1))
    lambda_ranges(family, np.array([low]), np.array([high]), ymax, lower, upper)
    return float(lower[0]), float(upper[0])


def clip_lambda(lmbda: np.float64, lambdas: tuple[float, float], consequence: str) -> np.float64:
    """Clip `lmbda` to the interval `lambdas`; if that changes it, issue SciPy's warning, ending in `consequence`."""
    lower, upper = lambdas
    if lower <= lmbda <= upper:
        return lmbda
    bound = np.float64(min(max(lmbda, lower), upper))
    if lower > upper or not math.isfinite(bound):
        raise ValueError("No lambda keeps the transformed data within `ymax`; pass a larger `ymax`.")
    warn(
        f"The optimal lambda is {lmbda}, but the returned lambda is the constrained optimum to ensure that the "
        f"maximum or the minimum of the transformed data does not {consequence}"
    )
    return bound
