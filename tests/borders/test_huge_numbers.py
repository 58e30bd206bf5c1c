"""Pass numbers beyond the range of float64 to every argument of every public function and plain kernel.

A call must return a result or raise one short TypeError or ValueError, and NumPy must not warn. The functions are
listed by `tests/support/border_table.py`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from border_table import fits, methods, plain, public_functions

import powerkern
from powerkern import kernels
from powerkern.kernels.moments import Moments

HUGE: dict[str, Any] = {
    "integer": 10**400,
    "negative integer": -(10**400),
    "fraction": Fraction(10**400, 3),
    "decimal": Decimal("1e400"),
    "signalling NaN": Decimal("sNaN"),
    "NaN": Decimal("nan"),
    "long double": np.longdouble("1e400"),
    "infinite long double": np.longdouble("inf"),
    "unsigned": np.uint64(2**63),
    "integers": [1, 2, 10**400],
    "long doubles": np.array([1, 2, "1e400"], dtype=np.longdouble),
}
#: Arguments left out: counts, which cause work in proportion to their size, and objects that are not numbers.
_OTHERS = {
    *("n_starts", "max_epochs", "max_eval", "ranks", "rank", "N", "replicates", "n_threads", "n_components", "n_bins"),
    *(
        "random_state",
        "patience",
        "plot",
        "out",
        "optimizer",
        "progress",
        "groups",
        "rows",
        "columns",
        "decompositions",
    ),
}
FUNCTIONS = list(public_functions())


def _check(function: Callable[..., Any], given: dict[str, Any], name: str) -> None:
    for value in HUGE.values():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                function(**{**given, name: value})
            except (TypeError, ValueError) as error:
                assert 10 < len(str(error)) < 400, error  # noqa: PT017
        for each in caught:
            # SciPy warns about too few data with a RuntimeWarning
            assert issubclass(each.category, UserWarning) or "too small" in str(each.message), (name, value, each)


def _names(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind < each.VAR_KEYWORD and each.name not in _OTHERS]


@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=[entry.name for entry in FUNCTIONS])
def test_functions_take_or_refuse_numbers_of_any_size(k: int) -> None:
    entry = FUNCTIONS[k]
    for name in _names(entry.function):
        _check(entry.function, entry.make_arguments(plain()), name)


@pytest.mark.parametrize("kind", [kind for kind in fits() if "," not in kind])
def test_methods_take_or_refuse_numbers_of_any_size(kind: str) -> None:
    result = fits()[kind](plain())
    for name, required in methods(kind, result):
        method = getattr(result, name)
        given = {key: plain().argument(key, f"{kind}.{name}") for key in required}
        for argument in _names(method):
            _check(method, given, argument)


_X = np.arange(1.0, 9.0)
_ARGUMENTS: dict[str, Any] = {
    **dict.fromkeys(("lmbda", "c", "x0", "center"), 0.5),
    **dict.fromkeys(("scale", "k", "k_location", "max_step", "w", "upper"), 1.0),
    **dict.fromkeys(("x", "y", "scores", "logs", "weights"), _X),
    "loc": 0.0,
    "ddof": 0,
    "signs": np.ones(8),
    "lower": -1.0,
    "xtol": 1e-8,
    "max_eval": 50,
    "a": 0.0,
    "b": 3.0,
    "f": lambda x: (x - 1.0) ** 2,
    "f_derivatives": lambda x: (x - 1.0, 1.0, 0.0),
    "state": Moments(1.0, 1.0, 1.0),
    "chan_merge(a)": Moments(1.0, 1.0, 1.0),
    "chan_merge(b)": Moments(1.0, 2.0, 1.0),
    "welford_update(x)": 1.0,
    "rectified_boxcox(x)": 0.5,
    "rectified_yeojohnson(x)": 0.5,
    "inv_rectified_boxcox(y)": 0.5,
    "inv_rectified_yeojohnson(y)": 0.5,
}


@pytest.mark.parametrize("name", kernels.__all__)
def test_kernels_take_or_refuse_numbers_of_any_size(name: str) -> None:
    kernel = getattr(kernels, name)
    names = list(inspect.signature(kernel).parameters)
    given = {each: _ARGUMENTS.get(f"{name}({each})", _ARGUMENTS.get(each)) for each in names}
    kernel(**given)
    for each in names:
        _check(kernel, given, each)
        if isinstance(given[each], Moments):
            _check(lambda mean, each=each: kernel(**{**given, each: given[each]._replace(mean=mean)}), {}, "mean")


@pytest.mark.parametrize("name", ["brent", "golden_section", "newton_root"])
def test_searches_take_or_refuse_values_of_any_size(name: str) -> None:
    arguments = {"x0": 0.5} if name == "newton_root" else {"a": 0.0, "b": 3.0}

    def search(value: Any) -> Any:
        def f(x: float) -> Any:
            return (value, 1.0, 0.0) if name == "newton_root" else value

        return getattr(kernels, name)(f, **arguments)

    _check(search, {}, "value")


def test_numbers_beyond_float64_are_rejected_or_become_infinite() -> None:
    """A Python integer is an error. A long double becomes infinite, an error if the argument must be finite."""
    assert kernels.rectified_boxcox(np.longdouble("1e400"), 0.5, 0.5, 2.0) == np.inf
    with pytest.raises(ValueError, match=r"x has integers beyond the range of float64"):
        kernels.rectified_boxcox(10**400, 0.5, 0.5, 2.0)
    with pytest.raises(ValueError, match=r"lmbda must be finite"):
        powerkern.fit(_X, lmbda=np.longdouble("1e400"))
