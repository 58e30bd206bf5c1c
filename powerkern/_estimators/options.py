"""Validate the options of estimators; one function per option."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TypeGuard

import numpy as np

from powerkern._input import lazy_scipy_special as special
from powerkern._input.arguments import as_number
from powerkern._input.arrays import as_choice, as_flag, is_whole, to_list
from powerkern._input.messages import shown
from powerkern.kernels.robust.options import BRENT, GLOBAL, MAD, MEDIAN, RAW

#: Quantile of the normal distribution beyond which a value is an outlier.
CUTOFF = 0.995
#: Search range of lambda for the prestandardised column, and quantiles beyond which the transform is rectified.
SEARCH_RANGE, CHANGE_POINTS = (-4.0, 6.0), (0.25, 0.75)

#: Value of `n_reweight` that means: reweight until the same values are kept as before.
SETTLED = "settled"


#: Conventions of `RewML`, and the transform under which the first step of each looks for outlying values.
CONVENTIONS = {"paper": "plain", "cellwise": "rectified"}
SEARCHES = {"global": GLOBAL, "brent": BRENT}
PRESTANDARDIZE = {"mad": MAD, "median": MEDIAN, "none": RAW}
FIRST_WEIGHTS = ("rectified", "plain")
RECTIFY = ("none", "one", "both")


def checked_cutoff(name: str, value: object) -> float:
    """Return `value` if it is a quantile between 0.5 and 1, otherwise raise an error that names the option."""
    return as_number(f"{name}, a quantile of the normal distribution,", value, "(0.5, 1)")


def normal_quantile(cutoff: float) -> float:
    """Return Phi^-1(cutoff); standardised values farther from 0 than this are outliers."""
    return float(special.ndtri(cutoff))


def _one_of(known: Collection[str]) -> Callable[[str, object], str]:
    return lambda name, value: as_choice(name, value, known)


def _steps(name: str, value: object) -> int | str:
    if isinstance(value, str) and value == SETTLED:
        return value
    if not is_whole(value) or not 0 <= value <= 100:
        raise ValueError(f"{name} must be a whole number from 0 to 100, or {SETTLED!r}, got {shown(value)}")
    return int(value)


def _number_in(interval: str) -> Callable[[str, object], float]:
    return lambda name, value: as_number(name, value, interval)


def _quartiles(name: str, value: object) -> tuple[float, float]:
    lower, upper = _pair(name, value)
    if not 0.0 < lower < 0.5 < upper < 1.0:
        raise ValueError(f"{name} must be two quantiles, one below 0.5 and one above, got {shown(value)}")
    return lower, upper


def _range(name: str, value: object) -> tuple[float, float]:
    low, high = _pair(name, value)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"{name} must be two finite numbers, the lower first, got {shown(value)}")
    return low, high


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)


def _pair(name: str, value: object) -> tuple[float, float]:
    numbers = to_list(value) if _is_sequence(value) else []
    if len(numbers) != 2:
        raise TypeError(f"{name} must be two numbers, got {shown(value)}")
    each = f"each of {name}"
    return as_number(each, numbers[0]), as_number(each, numbers[1])


#: The function that validates each option: takes its name and value, and returns the value or raises.
OPTION_CHECKS: dict[str, Callable[[str, object], object]] = {
    "adaptive_cutoff": as_flag,
    "c": _number_in("(0, inf)"),
    "change_points": _quartiles,
    "convention": _one_of(CONVENTIONS),
    "cutoff": checked_cutoff,
    "first_weights": _one_of(FIRST_WEIGHTS),
    "h": _number_in("(0.5, 1]"),
    "n_reweight": _steps,
    "prestandardize": _one_of(PRESTANDARDIZE),
    "rectify": _one_of(RECTIFY),
    "search": _one_of(SEARCHES),
    "search_range": _range,
}
