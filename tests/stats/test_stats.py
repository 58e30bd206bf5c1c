"""powerkern.stats agrees with scipy.stats wherever SciPy is right, and with multiprecision results elsewhere."""

from __future__ import annotations

import importlib
import inspect
import math
import runpy
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from references import FITTED, WITHOUT_OPTIMUM, Case, lambda_tolerance, relative_error

from powerkern import stats as ours

#: True if SciPy has the version for which its wrong results are asserted below.
SCIPY_AS_SEEN = scipy.__version__.startswith("1.17.")
#: True if SciPy's functions accept `nan_policy` and propagate NaN by default.
HAS_NAN_POLICY = "nan_policy" in inspect.signature(scipy.stats.boxcox).parameters
YMAX = np.finfo(float).max / 1e4

SKEWED = np.exp(np.random.default_rng(1).normal(size=60))
MIXED = np.random.default_rng(2).standard_t(4, size=60) + 0.3
YEARS = np.array([2003.0, 1950.0, 1997.0, 2000.0, 2009.0])
HOLES = np.array([[1.0, math.nan, 3.0, 0.5], [2.0, 2.5, math.nan, math.nan], [9.0, 1.5, 0.2, math.nan]])


def exact_llf(family: str, lmbda: float, x: Any) -> Any:
    """Return the log-likelihood of lambda for the values x, as SciPy defines it, computed with 100 digits.

    `family` is "boxcox" or "yeojohnson".
    """
    with mp.workdps(100):
        m, values = mp.mpf(float(lmbda)), [mp.mpf(float(v)) for v in x]
        if family == "boxcox":
            logs = [mp.log(v) for v in values]
            log_variance = _branch_log_variance(m, logs)
        else:
            logs = [mp.sign(v) * mp.log1p(abs(v)) for v in values]
            if min(values) >= 0:
                log_variance = _branch_log_variance(m, logs)
            elif max(values) < 0:
                log_variance = _branch_log_variance(2 - m, [-a for a in logs])
            else:
                log_variance = mp.log(_variance([_branch(m, a) if a >= 0 else -_branch(2 - m, -a) for a in logs]))
        return (m - 1) * mp.fsum(logs) - len(logs) * log_variance / 2


def _branch(m: Any, a: Any) -> Any:
    return mp.expm1(m * a) / m if m else a


def _branch_log_variance(m: Any, logs: list[Any]) -> Any:
    """Return the log-variance of (e^{m a} - 1)/m, where a runs over `logs`. Nothing cancels if all e^{m a} are tiny."""
    ref = max(logs, key=lambda a: m * a)
    return 2 * m * ref + mp.log(_variance([_branch(m, a - ref) for a in logs]))


def _variance(values: list[Any]) -> Any:
    mean = mp.fsum(values) / len(values)
    return mp.fsum((v - mean) ** 2 for v in values) / len(values)


# --- parity: the same call to both libraries ----------------------------------------------------------


class _Optimum:
    def __init__(self, x: Any) -> None:
        self.x = x


def _grid_optimizer(objective: Callable[[float], float]) -> _Optimum:
    grid = np.linspace(-2.0, 2.0, 401)
    return _Optimum(grid[np.argmin([objective(lmbda) for lmbda in grid])])


def _bounded_optimizer(objective: Callable[[float], float]) -> Any:
    return scipy.optimize.minimize_scalar(objective, bounds=(0.5, 0.9), method="bounded")


#: Calls with equal value (to 2e-6, SciPy's accuracy), type and dtype, or equal exception and message; equal warnings.
SAME = {
    "boxcox": lambda lib: lib.boxcox(SKEWED),
    "boxcox, list": lambda lib: lib.boxcox(SKEWED.tolist()),
    "boxcox, integers": lambda lib: lib.boxcox(np.array([3, 1, 4, 15, 9, 2])),
    "boxcox, float32": lambda lib: lib.boxcox(SKEWED.astype(np.float32)),
    "boxcox, big-endian": lambda lib: lib.boxcox(SKEWED.astype(">f8")),
    "boxcox, strided": lambda lib: lib.boxcox(np.repeat(SKEWED, 3)[::3]),
    "boxcox, alpha": lambda lib: lib.boxcox(SKEWED, alpha=0.05),
    "boxcox, alpha positional": lambda lib: lib.boxcox(SKEWED, None, 0.5),
    "boxcox, alpha 1": lambda lib: lib.boxcox(SKEWED, alpha=1.0),
    "boxcox, optimizer": lambda lib: lib.boxcox(SKEWED, optimizer=_bounded_optimizer),
    "boxcox, optimizer and alpha": lambda lib: lib.boxcox(SKEWED, optimizer=_bounded_optimizer, alpha=0.1),
    "boxcox, fixed": lambda lib: lib.boxcox(SKEWED, 0.5),
    "boxcox, fixed float32": lambda lib: lib.boxcox(SKEWED.astype(np.float32), 0.5),
    "boxcox, fixed float32 by float64": lambda lib: lib.boxcox(SKEWED.astype(np.float32), np.float64(0.5)),
    "boxcox, fixed float16": lambda lib: lib.boxcox(SKEWED.astype(np.float16), 0.5),
    "boxcox, fixed 2-D": lambda lib: lib.boxcox(SKEWED.reshape(6, 10), -1),
    "boxcox, fixed scalar": lambda lib: lib.boxcox(2.0, 0.5),
    "boxcox, fixed lambda per column": lambda lib: lib.boxcox(SKEWED.reshape(20, 3), [0.0, 0.5, -2.0]),
    "boxcox, fixed zero and negative": lambda lib: lib.boxcox([0.0, -1.0, math.nan, math.inf], [[-1.0], [0.0], [2.0]]),
    "boxcox, alpha ignored": lambda lib: lib.boxcox(SKEWED, 0.5, alpha=7),
    "boxcox, empty": lambda lib: lib.boxcox([]),
    "boxcox, 2-D": lambda lib: lib.boxcox(SKEWED.reshape(6, 10)),
    "boxcox, 0-D": lambda lib: lib.boxcox(2.0),
    "boxcox, constant": lambda lib: lib.boxcox([2.0, 2.0]),
    "boxcox, constant negative": lambda lib: lib.boxcox([-2.0, -2.0]),
    "boxcox, one value": lambda lib: lib.boxcox([2.0]),
    "boxcox, zero": lambda lib: lib.boxcox([0.0, 2.0]),
    "boxcox, negative": lambda lib: lib.boxcox([-1.0, 2.0]),
    "boxcox, NaN": lambda lib: lib.boxcox([1.0, math.nan, 3.0]),
    "boxcox, NaN and negative": lambda lib: lib.boxcox([1.0, math.nan, -3.0]),
    "boxcox, infinite": lambda lib: lib.boxcox([1.0, math.inf, 3.0]),
    "boxcox, bad optimizer": lambda lib: lib.boxcox(SKEWED, optimizer="brent"),
    "boxcox, optimizer without x": lambda lib: lib.boxcox(SKEWED, optimizer=lambda f: 1.0),
    "boxcox, overflow": lambda lib: lib.boxcox(YEARS),
    "boxcox, overflow float32": lambda lib: lib.boxcox((YEARS / 10).astype(np.float32)),
    "normmax": lambda lib: lib.boxcox_normmax(SKEWED),
    "normmax, mle": lambda lib: lib.boxcox_normmax(SKEWED, method="mle"),
    "normmax, all": lambda lib: lib.boxcox_normmax(SKEWED, None, "all"),
    "normmax, brack": lambda lib: lib.boxcox_normmax(SKEWED, brack=(0.0, 0.5), method="all"),
    "normmax, brack of 3": lambda lib: lib.boxcox_normmax(SKEWED, brack=(4.0, 0.0, -3.0), method="all"),
    "normmax, brack of 1": lambda lib: lib.boxcox_normmax(SKEWED, brack=(1.0,), method="mle"),
    "normmax, brack of 1, pearsonr": lambda lib: lib.boxcox_normmax(SKEWED, brack=(1.0,)),
    "normmax, brack out of order": lambda lib: lib.boxcox_normmax(SKEWED, brack=(0.0, 3.0, 2.0), method="mle"),
    "normmax, brack without minimum": lambda lib: lib.boxcox_normmax(SKEWED, brack=(2.0, 3.0, 4.0), method="mle"),
    "normmax, optimizer": lambda lib: lib.boxcox_normmax(SKEWED, method="all", optimizer=_grid_optimizer),
    "normmax, optimizer and brack": lambda lib: lib.boxcox_normmax(SKEWED, (0, 1), optimizer=_grid_optimizer),
    "normmax, bad method": lambda lib: lib.boxcox_normmax(SKEWED, method="mse"),
    "normmax, ymax": lambda lib: lib.boxcox_normmax(SKEWED + 5.0, method="mle", ymax=3.0),
    "normmax, ymax, pearsonr": lambda lib: lib.boxcox_normmax(1.0 / (SKEWED + 5.0), ymax=3.0),
    "normmax, ymax inactive": lambda lib: lib.boxcox_normmax(SKEWED, method="all", ymax=1e9),
    "normmax, ymax infinite": lambda lib: lib.boxcox_normmax(YEARS, method="mle", ymax=math.inf),
    "normmax, ymax negative": lambda lib: lib.boxcox_normmax(SKEWED, ymax=-1),
    "normmax, NaN": lambda lib: lib.boxcox_normmax([1.0, math.nan]),
    "normmax, negative": lambda lib: lib.boxcox_normmax([1.0, -1.0]),
    "llf": lambda lib: lib.boxcox_llf(0.3, SKEWED),
    "llf, integer lambda": lambda lib: lib.boxcox_llf(2, SKEWED),
    "llf, lambda 0": lambda lib: lib.boxcox_llf(0, SKEWED),
    "llf, float32": lambda lib: lib.boxcox_llf(0.3, SKEWED.astype(np.float32)),
    "llf, float32, lambda float64": lambda lib: lib.boxcox_llf(np.float64(0.3), SKEWED.astype(np.float32)),
    "llf, scalar": lambda lib: lib.boxcox_llf(0.3, 2.0),
    "llf, NaN": lambda lib: lib.boxcox_llf(0.3, HOLES),
    "llf, NaN omitted": lambda lib: lib.boxcox_llf(0.3, HOLES, nan_policy="omit"),
    "llf, NaN raises": lambda lib: lib.boxcox_llf(0.3, HOLES, nan_policy="raise"),
    "llf, NaN omitted 1-D": lambda lib: lib.boxcox_llf(0.3, HOLES[0], nan_policy="omit"),
    "llf, only NaN": lambda lib: lib.boxcox_llf(0.3, [math.nan, math.nan], nan_policy="omit"),
    "llf, only NaN in a column": lambda lib: lib.boxcox_llf(0.3, HOLES[1:], nan_policy="omit"),
    "llf, axis 1": lambda lib: lib.boxcox_llf(0.3, HOLES, axis=1, nan_policy="omit"),
    "llf, axis -2, kept": lambda lib: lib.boxcox_llf(0.3, HOLES, axis=-2, nan_policy="omit", keepdims=True),
    "llf, axis None": lambda lib: lib.boxcox_llf(0.3, HOLES, axis=None, nan_policy="omit"),
    "llf, axes": lambda lib: lib.boxcox_llf(0.3, SKEWED.reshape(3, 4, 5), axis=(2, 0), keepdims=True),
    "llf, axis None, kept": lambda lib: lib.boxcox_llf(0.3, SKEWED.reshape(3, 4, 5), axis=None, keepdims=True),
    "llf, 1-D kept": lambda lib: lib.boxcox_llf(0.3, SKEWED, keepdims=True),
    "llf, axis too large": lambda lib: lib.boxcox_llf(0.3, SKEWED, axis=1),
    "llf, axis fractional": lambda lib: lib.boxcox_llf(0.3, SKEWED, axis=0.5),
    "llf, axis text": lambda lib: lib.boxcox_llf(0.3, SKEWED, axis="rows"),
    "llf, axes repeated": lambda lib: lib.boxcox_llf(0.3, HOLES, axis=(0, -2)),
    "llf, empty": lambda lib: lib.boxcox_llf(0.3, []),
    "llf, empty columns": lambda lib: lib.boxcox_llf(0.3, np.empty((0, 3))),
    "llf, empty rows": lambda lib: lib.boxcox_llf(0.3, np.empty((3, 0))),
    "llf, masked": lambda lib: lib.boxcox_llf(0.3, np.ma.array([1.0, 2.0, 5.0, 99.0], mask=[0, 0, 0, 1])),
    "llf, masked rows": lambda lib: lib.boxcox_llf(
        0.3, np.ma.array(SKEWED[:6].reshape(2, 3), mask=[[0, 0, 0], [1, 1, 1]]), axis=1
    ),
    "llf, infinite": lambda lib: lib.boxcox_llf(0.3, [1.0, math.inf]),
    "yeojohnson": lambda lib: lib.yeojohnson(MIXED),
    "yeojohnson, list": lambda lib: lib.yeojohnson(MIXED.tolist()),
    "yeojohnson, negative": lambda lib: lib.yeojohnson(-SKEWED),
    "yeojohnson, integers": lambda lib: lib.yeojohnson([3, -1, 4, 15, 9, -2, 0]),
    "yeojohnson, float32": lambda lib: lib.yeojohnson(MIXED.astype(np.float32)),
    "yeojohnson, zeros": lambda lib: lib.yeojohnson(np.zeros(4)),
    "yeojohnson, empty": lambda lib: lib.yeojohnson([]),
    "yeojohnson, NaN": lambda lib: lib.yeojohnson([1.0, math.nan]),
    "yeojohnson, infinite": lambda lib: lib.yeojohnson([1.0, -math.inf]),
    "yeojohnson, complex": lambda lib: lib.yeojohnson([1.0, 2j]),
    "yeojohnson, fixed": lambda lib: lib.yeojohnson(MIXED, 0.5),
    "yeojohnson, fixed 0": lambda lib: lib.yeojohnson(MIXED, 0),
    "yeojohnson, fixed 2": lambda lib: lib.yeojohnson(MIXED, 2),
    "yeojohnson, fixed float32": lambda lib: lib.yeojohnson(MIXED.astype(np.float32), 1.5),
    "yeojohnson, fixed 2-D": lambda lib: lib.yeojohnson(MIXED.reshape(6, 10), 1.5),
    "yeojohnson, fixed, not finite": lambda lib: lib.yeojohnson([math.nan, math.inf, -math.inf], 0.5),
    "yeojohnson, fixed complex": lambda lib: lib.yeojohnson([1j], 0.5),
    "yeojohnson_normmax": lambda lib: lib.yeojohnson_normmax(MIXED),
    "yeojohnson_normmax, brack": lambda lib: lib.yeojohnson_normmax(MIXED, (0.0, 1.0)),
    "yeojohnson_normmax, brack of 1": lambda lib: lib.yeojohnson_normmax(MIXED, brack=(1.0,)),
    "yeojohnson_normmax, brack out of order": lambda lib: lib.yeojohnson_normmax(MIXED, brack=(3.0, 0.0, 1.0)),
    "yeojohnson_normmax, empty": lambda lib: lib.yeojohnson_normmax(np.array([])),
    "yeojohnson_llf": lambda lib: lib.yeojohnson_llf(0.3, MIXED),
    "yeojohnson_llf, lambda 2": lambda lib: lib.yeojohnson_llf(2, MIXED),
    "yeojohnson_llf, float32": lambda lib: lib.yeojohnson_llf(0.3, MIXED.astype(np.float32)),
    "yeojohnson_llf, axis 1": lambda lib: lib.yeojohnson_llf(0.3, HOLES - 1.0, axis=1, nan_policy="omit"),
    "yeojohnson_llf, NaN": lambda lib: lib.yeojohnson_llf(0.3, HOLES - 1.0, keepdims=True),
    "yeojohnson_llf, empty": lambda lib: lib.yeojohnson_llf(0.3, []),
    "yeojohnson_llf, one value": lambda lib: lib.yeojohnson_llf(0.3, [2.0]),
}


GAPS = np.where(np.arange(60) % 7, SKEWED, math.nan)
MIXED_GAPS = np.where(np.arange(60) % 7, MIXED, math.nan)


def _with_policy(policy: str) -> dict[str, Callable[[Any], Any]]:
    """Return calls with `nan_policy`, keyed by a description; each takes the library, SciPy's or ours."""
    keywords = {"nan_policy": policy}
    return {
        f"boxcox, {policy}": lambda lib: lib.boxcox(GAPS, **keywords),
        f"boxcox, {policy}, no NaN": lambda lib: lib.boxcox(SKEWED, **keywords),
        f"boxcox, {policy}, alpha": lambda lib: lib.boxcox(GAPS, alpha=0.1, **keywords),
        f"boxcox, {policy}, float32": lambda lib: lib.boxcox(GAPS.astype(np.float32), alpha=0.1, **keywords),
        f"boxcox, {policy}, lmbda": lambda lib: lib.boxcox(HOLES, 0.5, **keywords),
        f"boxcox, {policy}, optimizer": lambda lib: lib.boxcox(GAPS, optimizer=_bounded_optimizer, **keywords),
        f"boxcox, {policy}, negative": lambda lib: lib.boxcox([1.0, math.nan, -3.0], **keywords),
        f"boxcox, {policy}, infinite": lambda lib: lib.boxcox([1.0, math.nan, math.inf], **keywords),
        f"boxcox, {policy}, 2-D": lambda lib: lib.boxcox(HOLES, **keywords),
        f"boxcox, {policy}, empty": lambda lib: lib.boxcox([], **keywords),
        f"normmax, {policy}": lambda lib: lib.boxcox_normmax(GAPS, **keywords),
        f"normmax, {policy}, all": lambda lib: lib.boxcox_normmax(GAPS, method="all", **keywords),
        f"normmax, {policy}, ymax": lambda lib: lib.boxcox_normmax(GAPS + 5.0, method="mle", ymax=3.0, **keywords),
        f"normmax, {policy}, float32": lambda lib: lib.boxcox_normmax(
            GAPS.astype(np.float32), method="mle", **keywords
        ),
        # SciPy propagates NaN only for data that are all positive
        f"yeojohnson, {policy}": lambda lib: lib.yeojohnson(GAPS if policy == "propagate" else MIXED_GAPS, **keywords),
        f"yeojohnson, {policy}, lmbda": lambda lib: lib.yeojohnson(HOLES, 0.5, **keywords),
        f"yeojohnson, {policy}, all NaN": lambda lib: lib.yeojohnson(np.full(4, math.nan), **keywords),
        f"yeojohnson, {policy}, infinite": lambda lib: lib.yeojohnson([1.0, math.nan, math.inf], **keywords),
        f"yeojohnson normmax, {policy}": lambda lib: lib.yeojohnson_normmax(MIXED_GAPS, **keywords),
        f"yeojohnson normmax, {policy}, brack": lambda lib: lib.yeojohnson_normmax(MIXED_GAPS, (-1, 1), **keywords),
    }


if HAS_NAN_POLICY:
    SAME |= _with_policy("propagate") | _with_policy("omit") | _with_policy("raise")


def _outcome(call: Callable[[], Any]) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """Return the result or the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            result = error
    return result, [(w.category, _without_digits(str(w.message))) for w in caught]


def _without_digits(message: str) -> str:
    """Return a warning's text without the lambda in it."""
    return "".join(c for c in message if c not in "0123456789.-+e[] ")


def _flat(result: Any) -> list[Any]:
    return [part for one in result for part in _flat(one)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", SAME)
@pytest.mark.skipif(not scipy.__version__.startswith(("1.17.", "1.18.")), reason="compares with SciPy 1.17 and 1.18")
def test_results_errors_and_warnings_agree_with_scipy(name: str) -> None:
    expected, expected_warnings = _outcome(partial(SAME[name], scipy.stats))
    result, result_warnings = _outcome(partial(SAME[name], ours))
    if isinstance(expected, Exception):
        assert type(result) is type(expected)
        assert str(result) == str(expected)
        return
    assert result_warnings == expected_warnings
    assert len(_flat(result)) == len(_flat(expected))
    for one, other in zip(_flat(result), _flat(expected), strict=True):
        assert isinstance(one, type(other))
        assert np.asarray(one).dtype == np.asarray(other).dtype
        assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_signatures_are_scipys() -> None:
    for name in ours.__all__:
        if not hasattr(scipy.stats, name):
            continue
        mine = inspect.signature(getattr(ours, name)).parameters
        theirs = inspect.signature(getattr(scipy.stats, name)).parameters
        assert [p for p in mine if p in theirs] == list(theirs)
        for parameter in theirs:
            assert mine[parameter].kind == theirs[parameter].kind
            if parameter != "ymax":  # SciPy's default is a private sentinel
                assert mine[parameter].default == theirs[parameter].default
    assert set(inspect.signature(ours.yeojohnson_normmax).parameters) == {"x", "brack", "ymax", "nan_policy"}
    for function in (ours.boxcox, ours.boxcox_normmax, ours.yeojohnson, ours.yeojohnson_normmax):
        policy = inspect.signature(function).parameters["nan_policy"]
        assert policy.kind == policy.KEYWORD_ONLY
        assert policy.default == ("propagate" if HAS_NAN_POLICY else None)


@pytest.mark.parametrize(
    "version, policy",
    [
        ("1.17.1", None),
        ("1.18.0", "propagate"),
        ("1.18.0rc1", "propagate"),
        ("1.20.0", "propagate"),
        ("2.0.0", "propagate"),
    ],
)
def test_the_default_nan_policy_follows_the_version_of_scipy(
    monkeypatch: pytest.MonkeyPatch, version: str, policy: str | None
) -> None:
    path = inspect.getfile(importlib.import_module("powerkern.stats._arrays"))
    monkeypatch.setattr(scipy, "__version__", version)
    assert runpy.run_path(path)["NAN_POLICY"] == policy


# --- the reference values -----------------------------------------------------------------------------


def _unweighted(family: str, cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.family == family and case.weight is None]


def _is_off(lmbda: float, case: Case, ymax: float = math.inf) -> bool:
    """Return whether `lmbda` differs from the reference optimum of a case, under the constraint |psi| <= ymax."""
    if ymax in case.bounded:
        return not relative_error(lmbda, case.bounded[ymax]) <= 1e-12
    return not relative_error(lmbda, case.lmbda) <= lambda_tolerance(case)


@pytest.mark.filterwarnings("ignore:The optimal lambda is", "ignore:not fitted")
def test_boxcox_agrees_with_multiprecision_references() -> None:
    for case in _unweighted("box-cox", WITHOUT_OPTIMUM):
        with pytest.raises(ValueError, match="must not be constant"):
            ours.boxcox(case.x)
    failures = []
    for case in _unweighted("box-cox", FITTED):
        free = ours.boxcox_normmax(case.x, method="mle", ymax=math.inf)
        bounded = ours.boxcox_normmax(case.x, method="mle")
        y, lmbda = ours.boxcox(case.x)
        if _is_off(free, case) or _is_off(bounded, case, YMAX) or lmbda != bounded or not np.all(np.abs(y) <= YMAX):
            failures.append((case.name, free, bounded, case.lmbda, case.bounded))
    assert not failures


@pytest.mark.filterwarnings("ignore:The optimal lambda is", "ignore:not fitted")
def test_yeojohnson_agrees_with_multiprecision_references() -> None:
    for case in _unweighted("yeo-johnson", WITHOUT_OPTIMUM):
        if case.kind == "degenerate":
            free, bounded = (ours.yeojohnson_normmax(case.x, ymax=ymax) for ymax in (math.inf, YMAX))
            assert (free, bounded, ours.yeojohnson(case.x)[1]) == (1.0, 1.0, 1.0)
    failures = []
    for case in _unweighted("yeo-johnson", FITTED):
        free = ours.yeojohnson_normmax(case.x, ymax=math.inf)
        bounded = ours.yeojohnson_normmax(case.x, ymax=YMAX)
        y, lmbda = ours.yeojohnson(case.x)
        at_default_bound = np.max(np.abs(y)) > 1e149  # the bound is 1e-4 sqrt(1.8e308) = 1.3e150
        if (
            _is_off(free, case)
            or _is_off(bounded, case, YMAX)
            or not (at_default_bound or lmbda == free)
            or not np.all(np.isfinite(y))
        ):
            failures.append((case.name, free, bounded, lmbda, case.lmbda, case.bounded))
    assert not failures


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_llf_agrees_with_multiprecision_references(family: str) -> None:
    llf = ours.boxcox_llf if family == "box-cox" else ours.yeojohnson_llf
    failures = []
    for case in _unweighted(family, FITTED):
        exact, lmbda = -float(case.nll), float(case.lmbda)
        jacobian = np.log(case.x) if family == "box-cox" else np.sign(case.x) * np.log1p(np.abs(case.x))
        size = abs(exact) + abs((lmbda - 1.0) * jacobian.sum())  # magnitude of the terms of the likelihood
        if not abs(llf(lmbda, case.x) - exact) <= 1e-12 * size:
            failures.append((case.name, llf(lmbda, case.x), exact))
    assert not failures


# --- where SciPy is wrong -----------------------------------------------------------------------------

RARE = np.r_[np.zeros(299), 1.0]
CLUSTER = 1.0 + 1e-10 * np.array([0.3, -1.1, 0.8, 2.9, -0.4, 0.1, 1.4, -0.9])
COUNTS = np.array([1e-300, 3e-7, 2e-3, 0.5, 4.0, -2e-5, -0.7, -3.0, 8e200])

#: Family, data, the call to both libraries whose result is a lambda, and what SciPy 1.17 makes of it: a lambda, or the
#: name of an exception. Ours must have the larger likelihood at 100 digits, and the largest in its neighborhood.
WRONG_LAMBDAS = {
    "rare binary": ("yeojohnson", RARE, lambda lib: lib.yeojohnson_normmax(RARE), -110.42),
    "years": ("yeojohnson", YEARS, lambda lib: lib.yeojohnson_normmax(YEARS, brack=(-2, 2)), 47.239),
    "tight cluster": ("boxcox", CLUSTER, lambda lib: lib.boxcox(CLUSTER)[1], None),
    "tight cluster, Yeo-Johnson": ("yeojohnson", CLUSTER, lambda lib: lib.yeojohnson_normmax(CLUSTER), None),
    "wide range": ("yeojohnson", COUNTS, lambda lib: lib.yeojohnson_normmax(COUNTS), "ValueError"),
    "huge": ("yeojohnson", YEARS * 1e200, lambda lib: lib.yeojohnson_normmax(YEARS * 1e200, (-2, 2)), "BracketError"),
    "tiny": ("yeojohnson", YEARS * 1e-32, lambda lib: lib.yeojohnson_normmax(YEARS * 1e-32, (-2, 2)), "BracketError"),
}


@pytest.mark.parametrize("name", WRONG_LAMBDAS)
def test_right_where_scipys_lambda_is_wrong(name: str) -> None:
    family, x, call, seen = WRONG_LAMBDAS[name]
    lmbda = call(ours)
    best = exact_llf(family, lmbda, x)
    for neighbor in (lmbda * (1.0 - 1e-7), lmbda * (1.0 + 1e-7)):
        assert exact_llf(family, neighbor, x) < best
    if not SCIPY_AS_SEEN:
        return
    with np.errstate(all="ignore"):
        scipys, _ = _outcome(partial(call, scipy.stats))
    if isinstance(scipys, Exception):
        assert type(scipys).__name__ == seen
    else:
        assert seen is None or scipys == pytest.approx(seen, rel=1e-3)
        assert exact_llf(family, scipys, x) < best - 0.05


WRONG_LLF = {
    "tight cluster": (ours.boxcox_llf, scipy.stats.boxcox_llf, "boxcox", 0.5, 1e15 + np.array([0.0, 1.0, 5.0])),
    "overflow": (ours.yeojohnson_llf, scipy.stats.yeojohnson_llf, "yeojohnson", 104.0, YEARS),
    "underflow": (ours.yeojohnson_llf, scipy.stats.yeojohnson_llf, "yeojohnson", -90.0, YEARS),
    "tiny values": (ours.yeojohnson_llf, scipy.stats.yeojohnson_llf, "yeojohnson", 3.0, YEARS * 1e-170),
    "rounded constant": (ours.boxcox_llf, scipy.stats.boxcox_llf, "boxcox", 0.5, np.nextafter(2.0, [1, 3, 3])),
}


@pytest.mark.parametrize("name", WRONG_LLF)
def test_right_where_scipys_likelihood_is_wrong(name: str) -> None:
    mine, scipys, family, lmbda, x = WRONG_LLF[name]
    exact = float(exact_llf(family, lmbda, x))
    assert mine(lmbda, x) == pytest.approx(exact, rel=1e-12)
    if SCIPY_AS_SEEN:
        value, _ = _outcome(partial(scipys, lmbda, x))
        assert value != pytest.approx(exact, rel=1e-3)


@pytest.mark.slow
def test_an_interval_wider_than_scipys_search_is_found() -> None:
    x = np.array([0.1, 0.1, 0.1, 0.101])
    with pytest.warns(UserWarning, match="The optimal lambda is"):
        _, lmbda, (low, high) = ours.boxcox(x, alpha=0.05)
    drop = scipy.stats.chi2.isf(0.05, 1) / 2.0
    for end in (low, high):
        assert float(exact_llf("boxcox", lmbda, x) - exact_llf("boxcox", end, x)) == pytest.approx(drop, rel=1e-9)
    assert low < lmbda < high
    if SCIPY_AS_SEEN:
        outcome, _ = _outcome(lambda: scipy.stats.boxcox(x, alpha=0.05))
        assert isinstance(outcome, RuntimeError)


@pytest.mark.slow
def test_interval_of_a_tiny_alpha() -> None:
    _, lmbda, (low, high) = ours.boxcox(SKEWED, alpha=1e-40)
    drop = scipy.special.chdtri(1, 1e-40) / 2.0
    for end in (low, high):
        assert float(exact_llf("boxcox", lmbda, SKEWED) - exact_llf("boxcox", end, SKEWED)) == pytest.approx(drop)
    assert ours.boxcox(SKEWED, alpha=0)[2] == (-math.inf, math.inf)
    if SCIPY_AS_SEEN:
        outcome, _ = _outcome(lambda: scipy.stats.boxcox(SKEWED, alpha=1e-40))
        assert isinstance(outcome, RuntimeError)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_alpha_out_of_range(alpha: float) -> None:
    with pytest.raises(ValueError, match="`alpha` must be between 0 and 1"):
        ours.boxcox(SKEWED, alpha=alpha)


@pytest.mark.parametrize("x", [YEARS, 1.0 / YEARS], ids=["above 1", "below 1"])
@pytest.mark.parametrize("ymax", [1e-3, 1.0, 7.6, 7.7, 1e4, 1e300, np.finfo(float).max])
def test_ymax_is_kept_and_attained(x: np.ndarray, ymax: float) -> None:
    for method in ("mle", "pearsonr"):
        with pytest.warns(UserWarning, match="returned lambda is the constrained optimum .* exceed specified `ymax`"):
            lmbda = ours.boxcox_normmax(x, method=method, ymax=ymax)
        extreme = np.max(np.abs(ours.boxcox(x, lmbda)))
        assert ymax * (1.0 - 1e-9) < extreme <= ymax


@pytest.mark.parametrize("x", [YEARS, -YEARS], ids=["positive", "negative"])
@pytest.mark.parametrize("ymax", [1e-3, 7.0, 1e4, 1e300, np.finfo(float).max])
def test_ymax_of_yeojohnson_is_kept_and_attained(x: np.ndarray, ymax: float) -> None:
    with pytest.warns(UserWarning, match="exceed specified `ymax`"):
        lmbda = ours.yeojohnson_normmax(x, ymax=ymax)
    extreme = np.max(np.abs(ours.yeojohnson(x, lmbda)))
    assert ymax * (1.0 - 1e-9) < extreme <= ymax


def test_scipy_exceeds_ymax_below_the_logarithm() -> None:
    if SCIPY_AS_SEEN:
        outcome, _ = _outcome(lambda: scipy.stats.boxcox_normmax(YEARS, method="mle", ymax=1.0))
        assert abs(outcome) < 1e-15
        assert np.all(scipy.stats.boxcox(YEARS, outcome) > 7.5)


def test_ymax_that_no_lambda_keeps() -> None:
    with pytest.raises(ValueError, match="No lambda keeps the transformed data within `ymax`"):
        ours.boxcox_normmax([0.05, 0.3, 2.0, 30.0], method="mle", ymax=0.5)
    with pytest.raises(ValueError, match="`ymax` must be strictly positive"):
        ours.yeojohnson_normmax(MIXED, ymax=0)


def test_ymax_with_values_on_both_sides_of_1() -> None:
    """The bounded lambda satisfies |psi| <= ymax for values below and above 1, and attains ymax at one end."""
    x = np.r_[0.05, 20.0 - np.minimum(SKEWED, 15.0)]
    with pytest.warns(UserWarning, match="exceed specified `ymax`"):
        lmbda = ours.boxcox_normmax(x, method="mle", ymax=5.5)
    y = ours.boxcox(x, lmbda)
    assert np.all(np.abs(y) <= 5.5)
    assert max(-y.min(), y.max()) == pytest.approx(5.5, rel=1e-9)


# --- correlation with normal order statistics ----------------------------------------------------------


def _plot_correlation(x: np.ndarray, lmbda: float) -> float:
    """Return SciPy's probability plot correlation of x, transformed with 50 digits and scaled to fit float64."""
    with mp.workdps(50):
        psi = [_branch(mp.mpf(float(lmbda)), mp.log(mp.mpf(float(v)))) for v in x]
        low, high = min(psi), max(psi)
        scaled = [float((p - low) / (high - low)) for p in psi]
    return float(scipy.stats.probplot(scaled)[1][2])


@pytest.mark.parametrize(
    "x", [YEARS, SKEWED**200, 1.0 + 1e-9 * SKEWED, SKEWED], ids=["years", "wide", "tight", "plain"]
)
def test_correlation_is_a_maximum(x: np.ndarray) -> None:
    lmbda = ours.boxcox_normmax(x, ymax=math.inf)
    best = _plot_correlation(x, lmbda)
    width = 1e-3 / np.ptp(np.log(x))
    assert _plot_correlation(x, lmbda - width) < best > _plot_correlation(x, lmbda + width)


def test_correlation_where_scipy_finds_no_bracket() -> None:
    assert ours.boxcox_normmax(YEARS, ymax=math.inf) == pytest.approx(162.783932, rel=1e-6)
    if SCIPY_AS_SEEN:
        outcome, _ = _outcome(lambda: scipy.stats.boxcox_normmax(YEARS, ymax=math.inf))
        assert type(outcome).__name__ == "BracketError"


def test_correlation_of_two_distinct_values_does_not_depend_on_lambda() -> None:
    assert ours.boxcox_normmax([1.0, 2.0, 2.0, 2.0]) == 1.0


# --- input --------------------------------------------------------------------------------------------

FITS = {
    "boxcox": ours.boxcox,
    "boxcox_normmax": ours.boxcox_normmax,
    "yeojohnson": ours.yeojohnson,
    "yeojohnson_normmax": ours.yeojohnson_normmax,
}
TRANSFORMS = {
    "boxcox": partial(ours.boxcox, lmbda=0.5),
    "inv_boxcox": partial(ours.inv_boxcox, lmbda=0.5),
    "yeojohnson": partial(ours.yeojohnson, lmbda=0.5),
    "inv_yeojohnson": partial(ours.inv_yeojohnson, lmbda=0.5),
    "boxcox_llf": partial(ours.boxcox_llf, 0.5),
    "yeojohnson_llf": partial(ours.yeojohnson_llf, 0.5),
}


@pytest.mark.parametrize("name", [*FITS, *TRANSFORMS])
@pytest.mark.parametrize(
    "x",
    [["a", "b"], np.array([1, 2, None]), np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), [object()]],
    ids=["text", "objects", "dates", "object"],
)
def test_values_that_are_not_numbers(name: str, x: Any) -> None:
    with pytest.raises(TypeError, match="convert it to real numbers"):
        (FITS | TRANSFORMS)[name](x)


@pytest.mark.parametrize("name", ["boxcox", "inv_boxcox", "inv_yeojohnson", "boxcox_llf", "yeojohnson_llf"])
def test_complex_input(name: str) -> None:
    with pytest.raises(TypeError, match="convert it to real numbers"):
        TRANSFORMS[name]([1j, 2.0])


@pytest.mark.parametrize("name", FITS)
def test_shapes_and_masks_that_cannot_be_fitted(name: str) -> None:
    for x in (SKEWED.reshape(6, 10), 3.0):
        with pytest.raises(ValueError, match="must be 1-dimensional"):
            FITS[name](x)
    with pytest.raises(ValueError, match="must not be masked"):
        FITS[name](np.ma.array([1.0, 2.0, 3.0], mask=[True, False, False]))
    with pytest.raises(ValueError, match=r"finite"):
        FITS[name]([1.0, math.inf, 2.0])
    if not HAS_NAN_POLICY:
        with pytest.raises(ValueError, match=r"finite"):
            FITS[name]([1.0, math.nan, 2.0])


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "g", ">f8", ">i2", "u1", "?"])
def test_types_that_are_converted(name: str, dtype: str) -> None:
    x = (np.round(SKEWED * 8.0) % 2 + (dtype != "?") * np.arange(1, 61)).astype(dtype)
    if name.startswith("boxcox") and dtype == "?":
        x = x[x]
        with pytest.raises(ValueError, match="constant"):
            FITS[name](x)
        return
    result, expected = FITS[name](x), FITS[name](x.astype(float))
    for one, other in zip(_flat(result), _flat(expected), strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    "dtype, result", [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("g", "f8"), ("i1", "f8"), ("?", "f8")]
)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_types_of_results(name: str, dtype: str, result: str) -> None:
    assert TRANSFORMS[name](np.array([1, 0, 1], dtype=dtype)).dtype == np.dtype(result)


def test_other_containers() -> None:
    pd = pytest.importorskip("pandas")
    series = pd.Series(SKEWED, index=range(100, 160))
    assert_array_equal(ours.boxcox(series)[0], ours.boxcox(SKEWED)[0])
    assert_array_equal(ours.yeojohnson(series, 0.5), ours.yeojohnson(SKEWED, 0.5))
    frozen = SKEWED.copy()
    frozen.flags.writeable = False
    assert_array_equal(ours.boxcox(frozen)[0], ours.boxcox(SKEWED)[0])


def test_empty_and_constant() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        ours.boxcox_normmax([])
    with pytest.raises(ValueError, match="must not be constant"):
        ours.boxcox_normmax([2.0, 2.0])
    y, lmbda = ours.yeojohnson([2.0, 2.0, 2.0])
    assert lmbda == 1.0
    assert_allclose(y, 2.0, rtol=1e-15)
    assert ours.boxcox_llf(0.5, [2.0, 2.0]) == ours.yeojohnson_llf(0.5, [2.0, 2.0]) == math.inf
    assert math.isnan(ours.boxcox_llf(0.5, [0.0, 2.0]))


def test_unknown_nan_policy() -> None:
    with pytest.raises(ValueError, match="nan_policy must be one of"):
        ours.boxcox_llf(0.5, SKEWED, nan_policy="drop")


def test_nan_policies_whatever_scipy_is_installed() -> None:
    kept = SKEWED[np.arange(60) % 7 > 0]
    y, maxlog, interval = ours.boxcox(GAPS, alpha=0.1, nan_policy="omit")
    expected, expected_maxlog, expected_interval = ours.boxcox(kept, alpha=0.1)
    assert (maxlog, interval) == (expected_maxlog, expected_interval)
    assert_array_equal(y[~np.isnan(GAPS)], expected)
    assert np.isnan(y[np.isnan(GAPS)]).all()
    assert_array_equal(
        ours.boxcox_normmax(GAPS, method="all", nan_policy="omit"), ours.boxcox_normmax(kept, method="all")
    )
    y, maxlog, interval = ours.boxcox(GAPS, alpha=0.1, nan_policy="propagate")
    assert np.isnan([*y, maxlog, *interval]).all()
    y, maxlog = ours.yeojohnson(MIXED_GAPS, nan_policy="omit")
    assert maxlog == ours.yeojohnson_normmax(MIXED[~np.isnan(MIXED_GAPS)])
    assert_array_equal(np.isnan(y), np.isnan(MIXED_GAPS))
    assert np.isnan(ours.yeojohnson_normmax(MIXED_GAPS, nan_policy="propagate"))
    for refusing in (ours.boxcox, ours.boxcox_normmax, ours.yeojohnson, ours.yeojohnson_normmax):
        with pytest.raises(ValueError, match="The input contains nan values"):
            refusing(GAPS, nan_policy="raise")
        with pytest.raises(ValueError, match="nan_policy must be one of"):
            refusing(GAPS, nan_policy="ignore")
    # SciPy gives an arbitrary value or NumPy's error
    for values in ([2.0, math.nan, 2.0], [math.nan, math.nan]):
        with pytest.raises(ValueError, match=r"Data must not be (constant|empty)\."):
            ours.boxcox(values, nan_policy="omit")


def test_yeojohnson_normmax_returns_1_silently_if_float64_cannot_hold_lambda() -> None:
    """scikit-learn, which calls SciPy, returns 1 without a warning; warnings are errors in these tests."""
    assert ours.yeojohnson_normmax(np.array([5e-324, 1e-323, 1.5e-323, 4e-323])) == 1.0


def test_optimizer_that_works_on_arrays() -> None:
    """`scipy.optimize.minimize` uses arrays of length one, which SciPy's own functions reject."""
    expected = ours.boxcox_normmax(SKEWED, method="mle")
    lmbda = ours.boxcox_normmax(SKEWED, method="mle", optimizer=lambda f: scipy.optimize.minimize(f, x0=0.5))
    assert lmbda == pytest.approx(expected, abs=1e-5)
    assert np.ndim(lmbda) == 0


def test_warnings_point_at_the_caller() -> None:
    calls = [
        lambda: ours.boxcox(YEARS),
        lambda: ours.boxcox_normmax(YEARS, method="mle"),
        lambda: ours.yeojohnson_normmax(YEARS, ymax=1.0),
        lambda: ours.boxcox_llf(1.0, []),
        lambda: ours.yeojohnson_llf(1.0, []),
    ]
    for call in calls:
        with pytest.warns(Warning) as record:  # noqa: PT030
            call()
        assert [Path(w.filename).name for w in record] == [Path(__file__).name]


def test_no_floating_point_errors() -> None:
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for x in (YEARS, YEARS * 1e200, CLUSTER, SKEWED**60):
            ours.boxcox(x, alpha=0.05)
            ours.boxcox_normmax(x)
            ours.yeojohnson(x)
            ours.yeojohnson(-x)


# --- inverses and properties ---------------------------------------------------------------------------


def test_inverses_broadcast_as_scipys_do() -> None:
    y = np.linspace(-3.0, 4.0, 15)[:, None]
    lmbda = np.array([-0.5, 0.0, 0.3, 1.0, 2.0, 2.7])
    assert_allclose(ours.inv_boxcox(y, lmbda), scipy.special.inv_boxcox(y, lmbda), rtol=1e-13)
    x = ours.inv_yeojohnson(y, lmbda)
    inside = np.where(y >= 0.0, 1.0 + lmbda * y, 1.0 - (2.0 - lmbda) * y) >= 0.0
    assert_array_equal(np.isnan(x), ~inside)
    assert_allclose(ours.yeojohnson(x, lmbda)[inside], np.broadcast_to(y, x.shape)[inside], rtol=1e-13)
    for inverse in (ours.inv_boxcox, ours.inv_yeojohnson):
        assert inverse([], 0.5).shape == (0,)
        assert inverse(np.empty((0, 6)), lmbda).shape == (0, 6)
        assert isinstance(inverse(1.0, 0.5), np.float64)
        assert inverse(1.0, lmbda).shape == (6,)
        out = np.empty((15, 6))
        assert inverse(y, lmbda, out=out) is out
        assert_array_equal(out, inverse(y, lmbda))
        with pytest.raises(ValueError, match="broadcast"):
            inverse(np.ones(3), lmbda)


def test_float32_inverse() -> None:
    y = np.linspace(-0.4, 4.0, 9, dtype=np.float32)
    for mine, theirs in ((ours.inv_boxcox, scipy.special.inv_boxcox), (ours.inv_yeojohnson, ours.inv_yeojohnson)):
        x = mine(y, 0.5)
        assert x.dtype == np.float32
        assert_allclose(x, theirs(y.astype(float), 0.5), rtol=1e-6)


columns = st.lists(st.floats(0.01, 100.0), min_size=3, max_size=30).filter(lambda x: max(x) > 1.01 * min(x))


@settings(deadline=None, max_examples=50)
@given(columns, st.floats(1e-3, 0.9))
@pytest.mark.filterwarnings("ignore:The optimal lambda is")
def test_interval_ends_are_where_the_likelihood_says(x: list[float], alpha: float) -> None:
    _, lmbda, (low, high) = ours.boxcox(x, alpha=alpha)
    assert low <= lmbda <= high
    drop = scipy.special.chdtri(1, alpha) / 2.0
    best = ours.boxcox_llf(lmbda, x)
    for end in (low, high):
        assert best - ours.boxcox_llf(end, x) == pytest.approx(drop, abs=1e-11 * (1.0 + abs(best)))


@settings(deadline=None, max_examples=50)
@given(columns, st.floats(0.5, 2.0))
@pytest.mark.filterwarnings("ignore:The optimal lambda is")
def test_lambda_does_not_depend_on_the_unit(x: list[float], unit: float) -> None:
    lmbda = ours.boxcox_normmax(x, method="mle", ymax=math.inf)
    other = ours.boxcox_normmax(np.array(x) * unit, method="mle", ymax=math.inf)
    assert other == pytest.approx(lmbda, rel=1e-9, abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-50.0, 50.0), min_size=3, max_size=30).filter(lambda x: np.ptp(x) > 0.01))
def test_yeojohnson_lambda_mirrors(x: list[float]) -> None:
    lmbda = ours.yeojohnson_normmax(x, ymax=math.inf)
    assert ours.yeojohnson_normmax(-np.array(x), ymax=math.inf) == pytest.approx(2.0 - lmbda, rel=1e-9, abs=1e-9)
