"""Properties that must hold for a maximum likelihood fit and for the functions that it provides."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import powerkern as pk

from .columns import Batch
from .oracle import Likelihood, NotResolved

#: Half of the 95 % quantile of chi-square with one degree of freedom.
DROP = 1.920729410347062

#: Tolerance relative to max(1, |lambda|); for likelihood, output and standard deviation likewise.
TOLERANCE = 1e-10
#: Tolerance of the drop at the ends of intervals, relative to `DROP`.
DROP_TOLERANCE = 1e-6
#: Errors beyond the tolerance are accepted up to this multiple of the effect of rounding the data and weights.
ROUNDINGS = 8.0
#: Units in the last place by which an image may be below that of a smaller value.
MONOTONE = 8.0
#: Points of a column at which output is compared with the oracle.
POINTS = 5

_HALF_ULP = 2.0**-53


class Finding(NamedTuple):
    """A failed check: its kind, the name of the column, and the failure in words."""

    kind: str
    column: str
    text: str


class Fitted(NamedTuple):
    """One column: its fit, exact likelihood, and the ends of its likelihood interval."""

    fit: pk.PowerFit
    likelihood: Likelihood
    low: float
    high: float

    @property
    def lmbda(self) -> float:
        return float(self.fit.lmbda[0])


def check_batch(batch: Batch) -> Iterator[Finding]:
    """Fit a batch by `powerkern.fit`; yield the findings of all checks."""
    return check_fit(batch, lambda: pk.fit(batch.values, batch.family, sample_weight=batch.weight, n_threads=1))


def check_fit(batch: Batch, fitted: Callable[[], pk.PowerFit]) -> Iterator[Finding]:
    """Check the maximum likelihood fit that `fitted()` returns for a batch; yield the findings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = fitted()
            ends = fit.confint(n_threads=1)
            images = fit.transform(batch.values, n_threads=1)
    except Exception as error:
        yield Finding("exception", f"{batch.name}:*", repr(error))
        return
    for j in range(fit.n_features):
        likelihood = Likelihood(batch.values[:, j], batch.weight, batch.family)
        one = Fitted(fit[j : j + 1], likelihood, float(ends.low[j]), float(ends.high[j]))
        for kind, text in _check_column(one, batch.values[:, j], images[:, j]):
            yield Finding(kind, f"{batch.name}:{j}", text)


Check = Iterator[tuple[str, str]]


def _check_column(one: Fitted, x: np.ndarray, z: np.ndarray) -> Check:
    """Run the checks that apply to the column's status; yield the failures.

    `x` is the column and `z` its transform, computed together with other columns.
    """
    try:
        yield from _check_status(one)
        if one.fit.status[0] == pk.Status.OK:
            for check in (_check_lambda, _check_nll, _check_weight, _check_interval, _check_output):
                yield from check(one)
        part = one.fit.transform(x, n_threads=1)
        if not np.array_equal(part, z, equal_nan=True):
            yield "same-bits", f"{np.count_nonzero(part != z)} images depend on the other columns"
    except NotResolved:
        yield "oracle", "no precision resolves the column"
    except Exception as error:
        yield "exception", repr(error)


# --- status -------------------------------------------------------------------------------------------


def _check_status(one: Fitted) -> Check:
    status = pk.Status(int(one.fit.status[0]))
    n = one.likelihood.values.size
    expected = pk.Status.EMPTY if n == 0 else pk.Status.CONSTANT if n == 1 else pk.Status.OK
    if status == expected:
        return
    if status == pk.Status.UNREPRESENTABLE and n > 1:
        if _is_representable(one.likelihood):
            yield "status", f"unrepresentable, but lambda is {one.likelihood.optimum(1.0)!r}"
        return
    yield "status", f"{status.name} for {expected.name}, {n} distinct values"


def _is_representable(likelihood: Likelihood) -> bool:
    """Return whether the optimum, and the slope of the standardised transform there, can be represented in float64."""
    optimum = likelihood.optimum(1.0)
    if not np.isfinite(optimum):
        return False
    slopes = [likelihood.steepness(optimum, float(x)) for x in (likelihood.values[0], likelihood.values[-1])]
    return bool(np.isfinite(slopes).all())


# --- lambda, likelihood -------------------------------------------------------------------------------


def _check_lambda(one: Fitted) -> Check:
    likelihood, lmbda = one.likelihood, one.lmbda
    tolerance = TOLERANCE * max(1.0, abs(lmbda))
    if likelihood.is_minimum(lmbda, tolerance):
        return
    optimum = likelihood.optimum(lmbda)
    rounding = likelihood.rounding_of_optimum(optimum) if np.isfinite(optimum) else 0.0
    error = abs(optimum - lmbda)
    if not error <= tolerance + ROUNDINGS * rounding:
        relative = error / max(1.0, abs(optimum))
        yield "lambda", f"{lmbda!r}, true {optimum!r}: off by {relative:.1e}, rounding explains {rounding:.1e} absolute"


def _check_nll(one: Fitted) -> Check:
    nll, true = float(one.fit.nll[0]), one.likelihood.nll(one.lmbda)
    tolerance = TOLERANCE * max(one.likelihood.total, abs(true))
    if abs(nll - true) <= tolerance:
        return
    rounding = one.likelihood.rounding_of_nll(one.lmbda)
    if not abs(nll - true) <= tolerance + ROUNDINGS * rounding:
        yield "nll", f"{nll!r}, true {true!r} at lambda {one.lmbda!r}; rounding explains {rounding:.1e}"


def _check_weight(one: Fitted) -> Check:
    n_obs, total = float(one.fit.n_obs[0]), one.likelihood.total
    if not abs(n_obs - total) <= 4.0 * one.likelihood.n_rows * _HALF_ULP * total:
        yield "weight", f"n_obs {n_obs!r}, true {total!r}"


def _check_interval(one: Fitted) -> Check:
    if np.isnan(one.low) or np.isnan(one.high):
        yield "interval-nan", f"({one.low}, {one.high}) about lambda {one.lmbda!r}"
        return
    if not one.low <= one.lmbda <= one.high:
        yield "interval-excludes", f"({one.low!r}, {one.high!r}) without lambda {one.lmbda!r}"
    for end in (one.low, one.high):
        if np.isinf(end):
            farthest = np.copysign(np.finfo(float).max, end)
            if one.likelihood.rise(one.lmbda, farthest) > DROP:  # else the end is beyond float64
                yield "interval-infinite", f"an end is {end}, about lambda {one.lmbda!r}"
        elif not _is_end(one, end):
            rise = one.likelihood.rise(one.lmbda, end) if end != one.lmbda else 0.0
            yield (
                "interval-end",
                f"{end!r} is at a drop of {rise:.6g}, lambda {one.lmbda!r}, weight {one.likelihood.total:g}",
            )


def _is_end(one: Fitted, end: float) -> bool:
    likelihood, lmbda = one.likelihood, one.lmbda
    rise = likelihood.rise(lmbda, end) if end != lmbda else 0.0
    if abs(rise - DROP) <= DROP_TOLERANCE * DROP:
        return True
    slack = 1e-12 * max(1.0, abs(end))
    if likelihood.rise(lmbda, end - slack) <= DROP <= likelihood.rise(lmbda, end + slack):
        return True
    if likelihood.rise(lmbda, end - slack) >= DROP >= likelihood.rise(lmbda, end + slack):
        return True
    return abs(rise - DROP) <= DROP_TOLERANCE * DROP + ROUNDINGS * likelihood.rounding_of_rise(lmbda, end)


# --- output -------------------------------------------------------------------------------------------


def _check_output(one: Fitted) -> Check:
    """Check that the transform is finite, monotone, accurate and invertible, at the data and between them."""
    values = one.likelihood.values
    points = np.unique(np.concatenate([values, values[:-1] / 2.0 + values[1:] / 2.0]))
    points = points[(points >= values[0]) & (points <= values[-1])]
    z = one.fit.transform(points, n_threads=1)
    if not np.isfinite(z).all():
        yield "not-finite", f"{np.count_nonzero(~np.isfinite(z))} of {z.size} images, lambda {one.lmbda!r}"
        return
    yield from _check_monotone(one, points, z)
    some = np.unique(np.linspace(0.0, points.size - 1.0, POINTS).astype(int))
    yield from _check_images(one, points, z, some)


def _check_monotone(one: Fitted, points: np.ndarray, z: np.ndarray) -> Check:
    falls = (z[:-1] - z[1:]) / np.spacing(np.maximum(np.abs(z[:-1]), np.abs(z[1:])))
    worst = int(np.argmax(falls))
    exponent = max(abs(one.lmbda), abs(2.0 - one.lmbda))
    of_largest = 2.0 * (1.0 + exponent * (1.0 + float(np.max(_logs(points))))) * np.spacing(np.abs(z).max())
    if falls[worst] > MONOTONE and z[worst] - z[worst + 1] > of_largest:
        x, images = points[worst : worst + 2].tolist(), z[worst : worst + 2].tolist()
        at = f"x {x[0]!r}, {x[1]!r}, images {images[0]!r}, {images[1]!r}"
        yield "monotone", f"falls by {falls[worst]:g} ulp at {at}, lambda {one.lmbda!r}"


def _check_images(one: Fitted, points: np.ndarray, z: np.ndarray, some: np.ndarray) -> Check:
    """Compare images and their inverses with exact values.

    Parameters
    ----------
    one : Fitted
        The column.
    points, z : (n,) ndarray
        Points and their images.
    some : (k,) ndarray of int
        Indices of the points to compare.
    """
    x = points[some]
    steep = np.array([one.likelihood.steepness(one.lmbda, p) for p in x.tolist()])
    true = np.array([one.likelihood.standardized(one.lmbda, p) for p in x.tolist()])
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        rounding = float(np.nanmax(np.abs(x) * steep * _logs(x)) + np.abs(z).max()) * _HALF_ULP
        error = np.abs(z[some] - true) - TOLERANCE * np.maximum(1.0, np.abs(true)) - ROUNDINGS * rounding
        yield from _worst("standardized", error, x, z[some], true, one)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "column .* so flat there")
            back = one.fit.inverse_transform(z[some], n_threads=1, out_of_range="clip")
        yield from _worst("round-trip", _beyond_rounding(one, x, z[some], back, steep), x, back, x, one)


def _beyond_rounding(one: Fitted, x: np.ndarray, z: np.ndarray, back: np.ndarray, steep: np.ndarray) -> np.ndarray:
    """Return the excess of the errors of inverses over rounding, in x or, where psi is flat, in z; negative if none.

    Parameters
    ----------
    one : Fitted
        The column.
    x, z : (k,) ndarray
        Points and their images.
    back : (k,) ndarray
        Inverses of `z`.
    steep : (k,) ndarray
        dz/dx at the points.
    """
    largest = max(1.0, float(np.abs(z).max()))
    last_places = 64.0 * _HALF_ULP
    in_x = np.abs(back - x) - last_places * (np.abs(x) * _logs(x) + largest / steep) - 5e-324
    least = 5e-324 if one.likelihood.family == "box-cox" else -np.inf  # inverses of subnormal numbers may round to 0
    images = one.fit.transform(np.maximum(back, least), n_threads=1)
    in_z = np.abs(images - z) - last_places * (largest + np.nan_to_num(np.abs(x) * steep) * _logs(x))
    return np.fmin(in_x, in_z)


def _logs(x: np.ndarray) -> np.ndarray:
    """Return max(1, |ln |x||), the factor by which rounding of ln x is amplified in x."""
    return np.maximum(1.0, np.abs(np.log(np.maximum(np.abs(x), 5e-324))))


def _worst(kind: str, excess: np.ndarray, x: np.ndarray, got: np.ndarray, true: np.ndarray, one: Fitted) -> Check:
    wrong = ~(excess <= 0.0)
    if wrong.any():
        k = int(np.argmax(np.where(wrong, np.nan_to_num(excess, nan=np.inf), -np.inf)))
        yield kind, f"at {float(x[k])!r}: {float(got[k])!r}, true {float(true[k])!r}, lambda {one.lmbda!r}"
