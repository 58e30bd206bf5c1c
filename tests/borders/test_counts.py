"""Pass whole numbers of every kind to every argument that is a count, a position or a seed.

A call must return a result or raise one short TypeError or ValueError. It must not loop for ever or allocate memory in
proportion to the number. The arguments are those annotated ``int`` in a signature; see `tests/support/border_table.py`.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from border_table import Inputs, X, fits, methods, plain, public_functions

import powerkern as pk
from powerkern.completion import uv_decompose
from powerkern.joint import fit_joint
from powerkern.outliers import calibration_error
from powerkern.stats import boxcox_guerrero, boxcox_normplot

COUNTS: tuple[Any, ...] = (0, -1, 2**60, 10**30, True, 3.0, np.uint64(3))
#: Values of `n_threads`. Few suffice, as all functions share one check; these values are refused at once.
THREADS: tuple[Any, ...] = (-1, True, 3.0)
FUNCTIONS = list(public_functions())


def _counts(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of the arguments that are whole numbers."""
    for name, parameter in inspect.signature(function).parameters.items():
        is_default = isinstance(parameter.default, int) and not isinstance(parameter.default, bool)
        if is_default or re.search(r"\bint\b", str(parameter.annotation)):
            yield name


def _check(function: Callable[..., Any], given: dict[str, Any]) -> None:
    for name in _counts(function):
        for count in THREADS if name == "n_threads" else COUNTS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                try:
                    function(**{**given, name: count})
                except (TypeError, ValueError) as error:
                    text = str(error)
                    assert name.strip("`") in text or "rank" in text or "bins" in text, (name, count, text)
                    assert len(text) < 400, text
                    assert "\n" not in text, text


@pytest.mark.parametrize("k", range(len(FUNCTIONS)), ids=[entry.name for entry in FUNCTIONS])
def test_functions_take_or_refuse_whole_numbers(k: int) -> None:
    entry = FUNCTIONS[k]
    _check(entry.function, entry.make_arguments(plain()))


@pytest.mark.parametrize("kind", [kind for kind in fits() if "," not in kind])
def test_methods_take_or_refuse_whole_numbers(kind: str) -> None:
    inputs: Inputs = plain()
    result = fits()[kind](inputs)
    for name, required in methods(kind, result):
        _check(getattr(result, name), {key: inputs.argument(key, f"{kind}.{name}") for key in required})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_joint(X, n_starts=10_001), "n_starts must be at most 10000, got 10001"),
        (lambda: uv_decompose(X, 1, n_starts=10**30), r"n_starts must be at most 10000, got 10{30}"),
        (lambda: boxcox_normplot(X[:, 0], -1.0, 1.0, N=10**6 + 1), "N must be at most 1000000"),
        (lambda: calibration_error([0, 1], [0.1, 0.9], n_bins=10**6 + 1), "n_bins must be at most 1000000"),
        (lambda: pk.fit(X, estimator="robust").standard_error(X, replicates=10**5 + 1), "replicates must be at most"),
        (lambda: boxcox_guerrero(X[:, 0], 12, axis=1), "`axis` must be at most 0, got 1"),
        (lambda: boxcox_guerrero(X[:, 0], 12, axis=-2), "`axis` must be at least -1, got -2"),
        (lambda: boxcox_guerrero(X[:, 0], 2**31), "`season_length` must be at most 2147483647"),
    ],
)
def test_work_is_bounded(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_any_number_of_threads_and_any_seed_will_do() -> None:
    np.testing.assert_array_equal(pk.fit(X, n_threads=10**30).lmbda, pk.fit(X, n_threads=1).lmbda)
    assert uv_decompose(X, 1, rng=10**30).rmse == uv_decompose(X, 1, rng=10**30).rmse
