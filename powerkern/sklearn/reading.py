"""How the scikit-learn estimators read their input, and their messages about input that is not numeric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from powerkern._input.arguments import domain_error
from powerkern._input.arrays import column_label, filled, refuse_non_numbers
from powerkern._input.foreign import frame_library, refuse_foreign, refuse_remote
from powerkern.sklearn.private import Interval

#: Types that estimators compute in: float32 in gives float32 out, all else is float64.
FLOATS = (np.float64, np.float32)

#: The constraint on the parameter `n_threads`.
N_THREADS = [Interval(Integral, 1, None, closed="left"), None]


def own_options(parameter: str, given: dict[str, Any] | None, taken: tuple[str, ...]) -> dict[str, Any]:
    """Further options of a function, checked to be none that the estimator passes itself."""
    for name in given or {}:
        if name in taken:
            raise ValueError(f"{parameter} must not have {name!r}, which the estimator passes itself")
    return given or {}


def read(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's `validate_data`, which does not say which column of a data frame it cannot read: this does.

    Masked values are missing, NaN and infinite values pass: `refuse_values` looks at them.
    """
    refuse_foreign(X)
    _refuse_repeated_names(X)
    X = filled(X)
    with numbers_only(X):
        return validate_data(estimator, X, **{"dtype": FLOATS, "ensure_all_finite": False, **options})


def note_features(estimator: Any, X: Any, reset: bool = True) -> None:
    """Set the number and the names of the features, or compare them, of data that something else reads."""
    refuse_remote(X)
    _refuse_repeated_names(X)
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (IndexError, KeyError):  # of an empty list, of a dict
        raise ValueError(f"X is a {type(X).__name__} without rows; pass a table of shape (n, p)") from None


@contextmanager
def numbers_only(X: Any, what: str = "X") -> Iterator[None]:
    """Refuse the non-numbers that `powerkern.fit` refuses, around a check of scikit-learn's, which takes some of them.

    Where both refuse, scikit-learn's message stands, except for data frames: ours names the column.
    """
    is_frame = frame_library(X) != "" and hasattr(X, "columns")
    ours: Exception | None = None
    if is_frame and len(X.columns) and hasattr(X, "sparse"):  # pandas' accessor, there where every column is
        ours = TypeError(f"{what} is sparse; pass {what}.sparse.to_dense()")
    else:
        try:
            refuse_non_numbers(X, what)
        except (TypeError, ValueError) as error:
            ours = error
    try:
        yield
    except OverflowError as error:
        raise ours or error from None
    except (TypeError, ValueError) as error:
        if ours is None or not is_frame:
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError  # as scikit-learn has it
        raise kind(str(ours)) from None
    if ours is not None:
        raise ours


def _refuse_repeated_names(X: Any) -> None:
    names = X.columns if frame_library(X) and hasattr(X, "columns") else []
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:  # before version 1.7 scikit-learn took them
        raise ValueError(f"the name {repeated!r} is that of more than one column; give each its own")


def feature_names(estimator: Any) -> list[str] | None:
    """Names of the features for messages, where there are any and all differ."""
    names = list(getattr(estimator, "feature_names_in_", []))
    return names if names and len(set(names)) == len(names) else None


def refuse_values(estimator: Any, values: NDArray[Any], missing_for: Any = None) -> None:
    """Raise for the first infinite value; for the first that is missing, too, where `missing_for` can take none."""
    names = feature_names(estimator)
    if (place := _first(np.isinf(values))) is not None:
        i, j = place
        raise domain_error("infinite", j, i, values[i, j], names)
    if missing_for is not None:
        refuse_nan(estimator, values, f"which {type(missing_for).__name__} does not take; impute first")


def refuse_nan(estimator: Any, values: NDArray[Any], remedy: str) -> None:
    """Raise for the first value that is NaN; the message ends with `remedy`."""
    if (place := _first(np.isnan(values))) is not None:
        i, j = place
        raise ValueError(f"{column_label(j, feature_names(estimator))}, row {i}: the value is NaN, {remedy}")


def _first(offends: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Row and column of the first offending value in the first column that has one."""
    if not offends.any():
        return None
    j = int(np.argmax(offends.any(axis=0)))
    return int(np.argmax(offends[:, j])), j
