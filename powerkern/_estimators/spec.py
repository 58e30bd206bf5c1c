"""`FitSpec`: all options of a fit, and the one table of options that exclude each other.

The module is placed above the estimators and below the results, because every fit stores the specification that it was
made from, and engines, chunks, scikit-learn's classes and the command line pass it on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._estimators.base import ColumnSpec, Estimator
from powerkern._estimators.estimators import as_estimator
from powerkern._estimators.fitted_origin import FITTED, WithOrigin
from powerkern._estimators.limits import LambdaLimit
from powerkern._estimators.ml import ML
from powerkern._estimators.shift import given_shift
from powerkern._input.arguments import as_pair, given_bounds, given_lambdas, output_limit
from powerkern._input.arrays import as_choice, as_flag, as_reals
from powerkern._input.censoring import as_ends, given_limits
from powerkern._input.choices import CENTRAL, CRITERIA, LIKELIHOOD, Infinite
from powerkern._input.frames import NonNumeric
from powerkern._input.messages import shown
from powerkern._typing import Bounds, FloatArray, Limits
from powerkern.kernels.transforms.family import FAMILIES, is_mirrored

#: Value of ``family=``: the better of the two families, column by column.
BEST = "best"
#: Families that a fit may have.
FIT_FAMILIES = (*FAMILIES, BEST)
#: Treatments of rows whose group was not in the fitted data.
UnknownGroups = Literal["raise", "nan", "pooled"]
#: Treatments of columns that have no fit.
OnFailure = Literal["raise", "passthrough"]

_FLOAT64 = np.dtype(np.float64)
_ML = ML()
_UNBOUNDED = np.array([[-np.inf], [np.inf]])


class ChunkOptions(TypedDict, total=False):
    """The options of `powerkern.fit` that every fit from chunks accepts."""

    standardize: bool
    lmbda: ArrayLike | None
    shift: ArrayLike
    ymax: float | None
    bounds: Bounds | None
    limits: Limits | None
    criterion: str
    infinite: Infinite
    column_names: Sequence[str] | None
    n_threads: int | None


class FitOptions(ChunkOptions, total=False):
    """The options that `powerkern.fit` accepts with and without groups."""

    sample_weight: ArrayLike | str | None
    below: object
    above: object
    between: tuple[object, object] | None
    origin: str | None
    non_numeric: NonNumeric
    on_failure: OnFailure
    progress: bool


@dataclass(frozen=True, kw_only=True, repr=False)
class FitSpec:
    """All options of a fit, as documented in `powerkern.fit`; created by `FitSpec.checked`, which validates them.

    Every fit stores its specification. In a stored specification, `lmbda`, `shift`, `bounds` and `limits` are None,
    numbers, or tuples with one number per column.
    """

    family: str = "yeo-johnson"
    estimator: Estimator = _ML
    standardize: bool = True
    lmbda: Any = None
    shift: Any = 0.0
    origin: str | None = None
    ymax: float | None = None
    bounds: Any = None
    limits: Any = None
    #: Whether cells may be censored, by `limits` or by the arguments `below`, `above` and `between`.
    censored: bool = False
    criterion: str = LIKELIHOOD
    infinite: Infinite = "raise"
    on_failure: OnFailure = "raise"
    dropna: bool | None = None
    unknown: UnknownGroups = "raise"
    shrink: bool = False

    def __repr__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = (f"{name}={value!r}" for name, value in values.items() if not _is_default(value, _DEFAULTS[name]))
        return f"FitSpec({', '.join(given)})"

    @classmethod
    def checked(cls, *, grouped: bool = False, in_chunks: bool = False, **given: Any) -> Self:
        """Validate arguments of `powerkern.fit`, before any data are read, and return the specification.

        Parameters
        ----------
        grouped : bool
            Whether groups of rows are fitted.
        in_chunks : bool
            Whether the rows are read in chunks and are never in memory together.
        **given
            Arguments of `powerkern.fit`, by name.

        Raises
        ------
        TypeError, ValueError
            For the first argument, in the order of `fit`, whose value is not allowed; otherwise for the first row of
            `CONFLICTS` that applies.
        """
        requested = {}
        for name, value in given.items():
            default = _WORDS[name]
            if value is not default and (type(value) is not type(default) or value != default):
                requested[name] = _CHECKS[name](name, value)
        spec = cls(**requested)
        for conflict in CONFLICTS:
            if (
                conflict.argument in requested
                and not (grouped and conflict.without_groups)
                and (in_chunks or not conflict.in_chunks)
                and conflict.holds(spec)
            ):
                raise conflict.error(conflict.message(spec))
        return spec

    @property
    def method(self) -> Estimator:
        """The estimator that runs: the requested one, wrapped in `WithOrigin` if ``origin="fit"``."""
        return self.estimator if self.origin is None else WithOrigin(self.estimator)

    @property
    def may_overflow(self) -> bool:
        """True if transformed values may overflow, because no bound on lambda prevents it."""
        return not self.standardize and (self.lmbda is not None or not self.estimator.has_likelihood)

    def per_column(self, p: int, names: Sequence[Any] | None = None, dtype: np.dtype[Any] = _FLOAT64) -> ColumnSpec:
        """Return the options for each of p columns; arguments as for `match_columns`."""
        return self.match_columns(p, names, dtype)[1]

    def match_columns(
        self, p: int, names: Sequence[Any] | None = None, dtype: np.dtype[Any] = _FLOAT64
    ) -> tuple[Self, ColumnSpec]:
        """Match the options with p columns; return the specification that the fit stores and the options by column.

        Parameters
        ----------
        p : int
            The number of columns.
        names : sequence, optional
            Labels of the columns, with which series are aligned.
        dtype : dtype
            The type of the values, on which the default of `ymax` depends.

        Raises
        ------
        TypeError, ValueError
            An argument has neither one entry nor p entries, an entry is not a number, or `bounds` do not form
            intervals.
        """
        has_shift = not (isinstance(self.shift, float) and self.shift == 0.0)
        lmbda = np.full(p, np.nan) if self.lmbda is None else given_lambdas(self.lmbda, p, names)
        shift = given_shift(self.shift, self.family, p, names) if has_shift else np.zeros(p)
        bounds = np.repeat(_UNBOUNDED, p, axis=1) if self.bounds is None else given_bounds(self.bounds, p, names)
        is_free = self.ymax is None and self.standardize
        ymax = np.inf if is_free else output_limit(self.ymax, self.standardize, dtype)
        requested = ColumnSpec(lmbda, shift, LambdaLimit(ymax, self.ymax is not None, bounds))
        if self.lmbda is None and self.bounds is None and self.limits is None and not has_shift:
            return self, requested
        ends = zip(self.bounds or (), bounds, strict=False)
        limits = self.limits and tuple(
            _plain(given, end) for given, end in zip(self.limits, given_limits(self.limits, p, names), strict=True)
        )
        kept = replace(
            self,
            lmbda=None if np.isnan(lmbda).all() else _plain(self.lmbda, lmbda),
            shift=_plain(self.shift, shift) if shift.any() else 0.0,
            bounds=self.bounds and tuple(_plain(given, end) for given, end in ends),
            limits=limits,
        )
        return kept, requested

    def limits_of(self, p: int) -> FloatArray | None:
        """Return the detection limits of p columns, (2, p): lower and upper; None if there are none."""
        return None if self.limits is None else given_limits(self.limits, p)

    def tiled(self, n_groups: int) -> Self:
        """Repeat the options for `n_groups` groups whose columns are placed side by side."""
        bounds, limits = (each and tuple(_repeat(end, n_groups) for end in each) for each in (self.bounds, self.limits))
        lmbda, shift = _repeat(self.lmbda, n_groups), _repeat(self.shift, n_groups)
        return replace(self, lmbda=lmbda, shift=shift, bounds=bounds, limits=limits)

    def part(self, columns: NDArray[np.intp]) -> Self:
        """Return the specification restricted to some columns of a fit."""
        each_column = (self.lmbda, self.shift, *(self.bounds or ()), *(self.limits or ()))
        if not any(isinstance(each, tuple) for each in each_column):
            return self
        bounds, limits = (each and tuple(_take(end, columns) for end in each) for each in (self.bounds, self.limits))
        lmbda, shift = _take(self.lmbda, columns), _take(self.shift, columns)
        return replace(self, lmbda=lmbda, shift=shift, bounds=bounds, limits=limits)


def _is_default(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)


def _plain(given: Any, columns: FloatArray) -> Any:
    """Return an argument in the form that a specification stores: None, one number, or a tuple of numbers.

    Parameters
    ----------
    given : None, float or array-like
        The argument as the user passed it.
    columns : (p,) ndarray
        The argument as one number per column.
    """
    if given is None:
        return None
    return tuple(columns.tolist()) if np.ndim(given) else float(columns[0])


def _repeat(entries: Any, n: int) -> Any:
    return entries * n if isinstance(entries, tuple) else entries


def _take(entries: Any, columns: NDArray[np.intp]) -> Any:
    return tuple(entries[j] for j in columns.tolist()) if isinstance(entries, tuple) else entries


# --- allowed values and combinations ---------------------------------------------------------------------------------


def _one_of(*known: str) -> Callable[[str, Any], str]:
    return lambda name, value: as_choice(name, value, known)


def _flag_or_none(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True, False or None, got {shown(value)}")
    return value


def _limit(name: str, value: Any) -> float:
    return output_limit(value, standardize=True)


def _readable(name: str, value: Any) -> Any:
    """Return the argument `value` unchanged; raise an error that calls it `name` unless it consists of real numbers."""
    as_reals(name, value)
    return value


#: The arguments that can be checked one by one before the number of columns is known.
_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "family": _one_of(*FIT_FAMILIES),
    "estimator": lambda name, value: as_estimator(value),
    "standardize": as_flag,
    "lmbda": _readable,
    "shift": _readable,
    "origin": _one_of(FITTED),
    "ymax": _limit,
    "bounds": as_pair,
    "limits": as_ends,
    "censored": as_flag,
    "criterion": _one_of(*CRITERIA),
    "on_failure": _one_of(*get_args(OnFailure)),
    "infinite": _one_of(*get_args(Infinite)),
    "dropna": _flag_or_none,
    "unknown": _one_of(*get_args(UnknownGroups)),
    "shrink": as_flag,
}


class Conflict(NamedTuple):
    """A row of the table of options that exclude each other; it applies only if the user gave `argument`."""

    argument: str
    holds: Callable[[FitSpec], bool]
    message: Callable[[FitSpec], str]
    error: type[Exception] = ValueError
    #: Whether the row applies only to fits without groups, or only to fits from chunks.
    without_groups: bool = False
    in_chunks: bool = False


def _has_shift(spec: FitSpec) -> bool:
    return bool(np.any(as_reals("shift", spec.shift)))


def _takes_shift(spec: FitSpec) -> bool:
    return spec.family in FAMILIES and not is_mirrored(FAMILIES[spec.family])


_ONLY_WITH_GROUPS = "dropna, unknown and shrink work only with groups=; leave them out"


def _fits_limits(spec: FitSpec) -> bool:
    """Return whether the requested estimator can fit censored cells."""
    return spec.estimator.has_likelihood and not spec.estimator.sets_unit and not spec.estimator.needs_origin


_WITH_LIMITS = "limits=, below=, above= and between= work only with"
#: Options that exclude censored cells: a predicate of the specification, and the message.
_NOT_CENSORED: tuple[tuple[Callable[[FitSpec], bool], Callable[[FitSpec], str]], ...] = (
    (
        lambda spec: not _fits_limits(spec),
        lambda spec: f"{_WITH_LIMITS} estimator='mle', not with {spec.estimator!r}",
    ),
    (lambda spec: spec.family == BEST, lambda spec: f"{_WITH_LIMITS} one family, not with family={BEST!r}"),
    (lambda spec: spec.origin is not None, lambda spec: f"{_WITH_LIMITS} a given origin, not with origin='fit'"),
    (lambda spec: spec.shrink, lambda spec: f"{_WITH_LIMITS} separate lambdas of the groups, not with shrink=True"),
    (lambda spec: spec.on_failure != "raise", lambda spec: f"{_WITH_LIMITS} on_failure='raise'"),
)

#: Options that exclude each other. The user sees the message of the first row that applies.
CONFLICTS: tuple[Conflict, ...] = (
    *(
        Conflict(name, lambda spec: True, lambda spec: _ONLY_WITH_GROUPS, TypeError, without_groups=True)
        for name in ("dropna", "unknown", "shrink")
    ),
    Conflict(
        "criterion",
        lambda spec: spec.family != BEST,
        lambda spec: f"criterion works only with family='best', not with family={shown(spec.family)}; leave it out",
    ),
    Conflict(
        "criterion",
        lambda spec: spec.criterion == CENTRAL,
        lambda spec: "criterion='central' needs the rows in memory: pk.fit(X, ...), not chunks of them",
        in_chunks=True,
    ),
    Conflict(
        "lmbda",
        lambda spec: not spec.estimator.has_likelihood,
        lambda spec: f"lmbda cannot be given with estimator={spec.estimator.name!r}; leave one of them out",
    ),
    Conflict(
        "lmbda",
        lambda spec: spec.family == BEST,
        lambda spec: f"lmbda cannot be given with family={shown(spec.family)}; choose one family",
    ),
    Conflict(
        "ymax",
        lambda spec: not spec.estimator.has_likelihood,
        lambda spec: f"ymax cannot be given with estimator={spec.estimator.name!r}; leave one of them out",
    ),
    Conflict(
        "shift",
        lambda spec: not _takes_shift(spec) and _has_shift(spec),
        lambda spec: f"shift works only with family='box-cox', not with family={shown(spec.family)}; leave it out",
    ),
    Conflict(
        "shift",
        lambda spec: spec.origin is not None and _has_shift(spec),
        lambda spec: "shift cannot be given with origin='fit', which finds the origin: leave one of them out",
    ),
    Conflict(
        "origin",
        lambda spec: not spec.estimator.fits_origin,
        lambda spec: (
            "origin='fit' works only with 'mle', 'central-mle', 'robust', 'rewml' and 'rewml-nr', not with "
            f"estimator={spec.estimator.name!r}"
        ),
    ),
    Conflict(
        "origin",
        lambda spec: spec.estimator.sets_unit,
        lambda spec: "prestandardize has no effect with origin='fit', which fits the unit: leave it out",
    ),
    Conflict(
        "estimator",
        lambda spec: spec.estimator.needs_origin and spec.origin is None,
        lambda spec: (
            f"estimator={spec.estimator.name!r} needs origin='fit', which needs the rows in memory: pk.fit(X, ...)"
        ),
    ),
    Conflict(
        "bounds",
        lambda spec: spec.estimator.needs_origin,
        lambda spec: f"bounds cannot be given with estimator={spec.estimator.name!r}; leave one of them out",
    ),
    Conflict(
        "estimator",
        lambda spec: spec.estimator.needs_order,
        lambda spec: (
            f"estimator={spec.estimator.name!r} needs all values in order, which summaries of chunks do not keep; "
            "fit a random sample of the rows by powerkern.fit, or use 'mle' or a robust estimator"
        ),
        in_chunks=True,
    ),
    Conflict(
        "estimator",
        lambda spec: not spec.estimator.fits_chunks,
        lambda spec: "ML(prestandardize=...) needs the rows in memory: pk.fit(X, ...), not chunks of them",
        in_chunks=True,
    ),
    *(Conflict("censored", holds, message) for holds, message in _NOT_CENSORED),
    Conflict(
        "shrink",
        lambda spec: (
            not spec.estimator.has_likelihood
            or spec.family == BEST
            or spec.lmbda is not None
            or spec.origin is not None
        ),
        lambda spec: "shrink=True works only for lambdas fitted by maximum likelihood, in one family, without origin=",
    ),
)

_DEFAULTS: Mapping[str, Any] = {each.name: each.default for each in fields(FitSpec)}
#: The defaults of all options in the form in which users pass them.
_WORDS = {**_DEFAULTS, "estimator": ML.name}
