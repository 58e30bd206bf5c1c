"""Maps from outlier scores to probabilities, fitted in passes over chunks of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powerkern._estimators.estimators import Estimator
from powerkern._input.arrays import as_choice
from powerkern._input.frames import NonNumeric
from powerkern._results.power_fit import PowerFit
from powerkern.location import LocationScale
from powerkern.outliers.rules import (
    METHODS,
    PROPOSALS,
    SCALES,
    Rule,
    by_rule,
    center_of,
    proposal2,
    refuse_overflow,
    trim_of,
    warn_of,
)
from powerkern.outliers.scaling import ScoreScaling, without_infinite
from powerkern.sketch import fit_with
from powerkern.sketch.chunks import reading
from powerkern.sketch.engine import MapReduce, Pass, Passes
from powerkern.sketch.location import Located


def scaling_with(
    map_reduce: MapReduce,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    task_threads: int | None = 1,
) -> ScoreScaling:
    """Fit the map from scores to probabilities on scores that an engine holds: `fit_scaling` in a few passes.

    Parameters
    ----------
    map_reduce : function
        The engine, as for `powerkern.sketch.fit_with`.
    center, scale, method, trim, estimator
        As in `powerkern.outliers.outlier_probability`, except the scale "trimmed-sd", which needs all scores at once.
    task_threads : int or None, default 1
        Threads of each call of the function passed to the engine.

    Returns
    -------
    ScoreScaling
        Its `probability` maps the chunks one by one. mu and sigma are as exact as `powerkern.sketch.location_with`, for
        "yeo-johnson" as `powerkern.sketch.fit_with`.

    Raises
    ------
    TypeError, ValueError
        As `powerkern.outliers.fit_scaling`, and for "trimmed-sd".

    Warns
    -----
    UserWarning
        As `powerkern.outliers.fit_scaling`.

    See Also
    --------
    scaling_chunks : for chunks that this process reads.

    Examples
    --------
    >>> import functools
    >>> import numpy as np
    >>> from powerkern.outliers import fit_scaling, scaling_with
    >>> scores = np.random.default_rng(0).gamma(3.0, size=20_000)
    >>> def map_reduce(function, merge):
    ...     return functools.reduce(merge, map(function, np.array_split(scores, 10)))
    >>> scaling = scaling_with(map_reduce, center="median")
    >>> np.allclose(scaling.probability([1.0, 9.0]), fit_scaling(scores, center="median").probability([1.0, 9.0]))
    True
    """
    as_choice("method", method, METHODS)
    as_choice("scale", scale, SCALES)
    finite = _Changed(map_reduce, _finite)
    scores, power = Located(Passes(finite, n_threads=task_threads)), None
    ranges = scores.range
    rule = used = Rule(center_of(center, ranges.n_features), scale, trim_of(trim))
    if method == "yeo-johnson":
        power = fit_with(finite, "yeo-johnson", estimator, task_threads=task_threads)
        transformed = _Changed(finite, _Transformed(power))
        scores, used = Located(Passes(transformed, n_threads=task_threads)), rule.through(power)
    if method == "linear":
        with np.errstate(over="ignore", invalid="ignore"):
            some = ranges.count > 0.0
            mu = np.where(some, ranges.x_min, np.nan)
            sigma = np.where(some, ranges.x_max - ranges.x_min, np.nan)
        refuse_overflow(sigma, ranges.column_names)
    elif method == "gamma":
        mu, sigma = scores.locate("mean-sd")
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = sigma * np.where(ranges.count > 1.0, np.sqrt(ranges.count / (ranges.count - 1.0)), np.nan)
    elif method in PROPOSALS:
        mu, sigma = proposal2(scores.locate, method)
    else:
        mu, sigma = by_rule(scores.locate, used, _trimmed_moments)
    warn_of(method, mu, sigma, ranges.column_names)
    return ScoreScaling(method, rule.center, scale, mu, sigma, power, ranges.column_names)


def scaling_chunks(
    chunks: Any,
    center: str | ArrayLike = "mean",
    scale: str = "nmad",
    method: str = "gaussian",
    *,
    trim: float = 0.1,
    estimator: Estimator | str = "rewml",
    non_numeric: NonNumeric = "raise",
    n_threads: int | None = None,
    progress: bool = False,
) -> ScoreScaling:
    """Fit the map from scores to probabilities on chunks: `fit_scaling` for scores larger than memory.

    Parameters
    ----------
    chunks, non_numeric, progress
        As for `powerkern.sketch.fit_chunks`.
    center, scale, method, trim, estimator
        As for `scaling_with`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    ScoreScaling

    Raises
    ------
    TypeError, ValueError
        As `scaling_with` and `powerkern.sketch.fit_chunks`.

    Warns
    -----
    UserWarning
        As `powerkern.outliers.fit_scaling`.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.outliers import scaling_chunks
    >>> scores = np.random.default_rng(0).gamma(3.0, size=20_000)
    >>> chunks = np.array_split(scores, 7)
    >>> scaling = scaling_chunks(chunks, method="huber")
    >>> probabilities = [scaling.probability(chunk) for chunk in chunks]
    """
    with reading(chunks, None, non_numeric, progress) as map_reduce:
        return scaling_with(map_reduce, center, scale, method, trim=trim, estimator=estimator, task_threads=n_threads)


@dataclass(frozen=True)
class _Prepared:
    """A pass over modified chunks."""

    function: Pass[Any]
    change: Callable[[Any], Any]

    def __call__(self, chunk: Any, weight: Any = None) -> Any:
        return self.function(self.change(chunk), weight)

    def part(self, columns: ArrayLike) -> _Prepared | None:
        """The pass over these columns."""
        inner = self.function.part(columns)
        return None if inner is None else _Prepared(inner, self.change)


class _Changed(NamedTuple):
    """An engine that changes its chunks first."""

    map_reduce: MapReduce
    change: Callable[[Any], Any]

    def __call__(self, function: Pass[Any], merge: Callable[[Any, Any], Any]) -> Any:
        prepared: Any = _Prepared(function, self.change)
        return self.map_reduce(prepared, merge)


def _finite(chunk: Any) -> Any:
    """Scores with NaN in place of infinite ones."""
    return without_infinite(chunk)[0] if len(chunk) else chunk


@dataclass(frozen=True)
class _Transformed:
    """Transformed scores; those beyond float64 become its largest number."""

    power: PowerFit

    def __call__(self, chunk: Any) -> Any:
        if not len(chunk):
            return chunk
        values = without_infinite(chunk)[1].values
        return np.nan_to_num(self.power.transform(values, n_threads=1), copy=False, nan=np.nan)


def _trimmed_moments(trim: float) -> LocationScale:
    """Refuses "trimmed-sd", which chunks do not allow."""
    raise ValueError("scale='trimmed-sd' needs all scores at once; of chunks use 'nmad', 'niqr' or 'sd'")
