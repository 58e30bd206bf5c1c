"""Read the input of estimators, with messages that name the column, and a base class for numeric transformers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, validate_data

from powerkern._input.arguments import domain_error
from powerkern._input.arrays import column_label, filled, refuse_non_numbers
from powerkern._input.columns import LEAVE_OUT
from powerkern._input.foreign import refuse_foreign, refuse_remote
from powerkern._input.frames import names_of
from powerkern._input.messages import Rewording
from powerkern._input.reading import NEEDING_ALL
from powerkern._input.wrapping import as_plain
from powerkern.sklearn._compat import Interval

#: Types in which estimators compute: float32 for float32 input, otherwise float64.
FLOATS = (np.float64, np.float32)

#: Rewording of messages for estimators whose parameter `method` is the argument `family` of `powerkern.fit`.
CALLING_FAMILY_METHOD = Rewording((r"\bfamily=", "method="))
#: Rewording of messages for estimators with the parameter `variables`.
_OFFERING_VARIABLES = Rewording((f"{LEAVE_OUT}$", f"{LEAVE_OUT} (variables= names the columns to transform)"))

#: Constraint on the parameter `n_threads`.
N_THREADS = [Interval(Integral, 1, None, closed="left"), None]


class FloatTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Base class of numeric transformers: they accept NaN, and return float32 for float32, otherwise float64."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def read(estimator: Any, X: Any, **options: Any) -> Any:
    """Call scikit-learn's `validate_data`, with messages that name non-numeric columns.

    NaN and infinite values are accepted, and masked values become NaN. `options` are those of `validate_data`.
    """
    refuse_foreign(X)
    _refuse_repeated_names(X)
    X = filled(as_plain(X))
    fits, chooses = options.get("reset", True), hasattr(estimator, "variables")
    with NEEDING_ALL if not fits else _OFFERING_VARIABLES if chooses else Rewording(), numbers_only(X):
        return validate_data(estimator, X, **{"dtype": FLOATS, "ensure_all_finite": False, **options})


def read_array(X: Any, what: str = "X", **options: Any) -> Any:
    """Call scikit-learn's `check_array` on data that must be numeric; NaN is accepted.

    `what` names the argument in messages, and `options` are those of `check_array`.
    """
    X = filled(X)
    with numbers_only(X, what):
        return check_array(X, **{"dtype": FLOATS, "ensure_all_finite": "allow-nan", "input_name": what, **options})


def read_finite(estimator: Any, X: Any, **options: Any) -> NDArray[np.floating]:
    """Call `read`, and raise ValueError if a value is infinite."""
    values: NDArray[np.floating] = read(estimator, X, **options)
    refuse_values(estimator, values)
    return values


def note_features(estimator: Any, X: Any, reset: bool = True) -> None:
    """Set the number and the names of the features of an estimator from `X`; if not `reset`, compare them with `X`.

    The values of `X` are not checked, because another estimator will read them.
    """
    refuse_remote(X)
    _refuse_repeated_names(X)
    try:
        validate_data(estimator, as_plain(X), reset=reset, skip_check_array=True)
    except (IndexError, KeyError):  # for an empty list, and for a dict
        raise ValueError(f"X is a {type(X).__name__} without rows; pass a table of shape (n, p)") from None


@contextmanager
def numbers_only(X: Any, what: str = "X") -> Iterator[None]:
    """Return a context for a check of `X` by scikit-learn, which also rejects non-numeric input.

    The body of the ``with`` statement runs scikit-learn's check, which accepts some input that is not numeric. This
    function therefore makes a second check. If both checks reject `X`, the message is that of the second check for data
    frames, because it names the column, and otherwise that of scikit-learn. `what` names the argument in messages.
    """
    names = names_of(X)
    ours: Exception | None = None
    if names and hasattr(X, "sparse"):  # the accessor of pandas exists if every column is sparse
        ours = TypeError(f"{what} is sparse; pass {what}.sparse.to_dense()")
    else:
        try:
            refuse_non_numbers(X, what)
        except (TypeError, ValueError) as error:
            ours = error
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums the values, which may give inf - inf
            yield
    except OverflowError as error:
        raise ours or error from None
    except (TypeError, ValueError) as error:
        if ours is None or names is None:
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError  # the type that scikit-learn raises
        raise kind(str(ours)) from None
    if ours is not None:
        raise ours


def _refuse_repeated_names(X: Any) -> None:
    """Raise if two columns have the same name."""
    repeated = next((name for name, times in Counter(names_of(X)).items() if times > 1), None)
    if repeated is not None:  # scikit-learn accepts repeated names before version 1.7
        raise ValueError(f"the name {repeated!r} belongs to more than one column; give every column its own name")


def feature_names(estimator: Any) -> list[str] | None:
    """Return the names of the features for messages; None if there are no names, or if names are repeated."""
    names = list(getattr(estimator, "feature_names_in_", []))
    return names if names and len(set(names)) == len(names) else None


def refuse_values(estimator: Any, values: NDArray[Any], missing_for: Any = None) -> None:
    """Raise ValueError if a value is infinite or, given `missing_for`, if a value is NaN.

    `missing_for` is an estimator that does not accept NaN; the message names it.
    """
    names = feature_names(estimator)
    if (place := _first(np.isinf(values))) is not None:
        i, j = place
        raise domain_error("infinite", j, i, values[i, j], names)
    if missing_for is not None:
        refuse_nan(estimator, values, f"which {type(missing_for).__name__} does not take; impute first")


def refuse_nan(estimator: Any, values: NDArray[Any], remedy: str) -> None:
    """Raise ValueError if `values` contain NaN; the message names column and row, and ends with `remedy`."""
    if (place := _first(np.isnan(values))) is not None:
        i, j = place
        raise ValueError(f"{column_label(j, feature_names(estimator))}, row {i}: the value is NaN, {remedy}")


def _first(offends: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return row and column of the first True in the first column that contains one; None if there is none."""
    if not offends.any():
        return None
    j = int(np.argmax(offends.any(axis=0)))
    return int(np.argmax(offends[:, j])), j
