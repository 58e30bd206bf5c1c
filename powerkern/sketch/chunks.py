"""Fits of data larger than memory, from chunks of rows that can be read again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._estimators import ESTIMATORS
from powerkern._power_fit import PowerFit
from powerkern._typing import BoolArray, Bounds
from powerkern._validate import as_choice
from powerkern.kernels.family import FAMILIES
from powerkern.sketch.merging import finish, merge, range_of, sketch
from powerkern.sketch.summaries import Grid, Mergeable, Range, Sketch, replaced, unresolved

#: How often columns that their grid does not resolve are read again, on a finer one.
_REREADINGS = 3


def fit_chunks(
    chunks: Sequence[object] | Callable[[], Iterable[object]],
    family: str = "yeo-johnson",
    estimator: str = "mle",
    *,
    standardize: bool = True,
    sample_weight: Sequence[ArrayLike] | Callable[[], Iterable[ArrayLike]] | None = None,
    lmbda: ArrayLike | None = None,
    shift: ArrayLike = 0.0,
    ymax: float | None = None,
    bounds: Bounds | None = None,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
) -> PowerFit:
    """Fit of data larger than memory: `powerkern.fit` in two passes over chunks of rows.

    Parameters
    ----------
    chunks : sequence, or function that returns an iterable
        Chunks of rows, each as for `powerkern.fit`: a list of slices of a memory map, or a function that starts
        reading anew whenever it is called, such as ``lambda: pandas.read_csv("data.csv", chunksize=100_000)``.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    estimator : {"mle"}
        Maximum likelihood. Robust estimators need the order of all values, which sums do not hold.
    sample_weight : sequence of array-like, or function that returns an iterable, optional
        Non-negative weights of the rows, an array for each chunk.
    standardize, lmbda, shift, ymax, bounds, column_names, n_threads
        As for `powerkern.fit`.

    Returns
    -------
    PowerFit
        Equal to that of `powerkern.fit` to about 1e-13 in lambda. `profile` and `confint` need no data. Columns that
        their grid does not resolve (rare: see `finish`) are read again, up to three times, on finer ones;
        `Status.UNRESOLVED` marks those where that did not suffice.

    Raises
    ------
    TypeError, ValueError
        As `powerkern.fit`; the message names the chunk, from whose start rows are counted. An iterator as `chunks`,
        which could be read only once.

    Examples
    --------
    >>> import numpy as np
    >>> import powerkern as pk
    >>> from powerkern.sketch import fit_chunks
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> fit = fit_chunks([X[:300], X[300:]])
    >>> bool(np.abs(fit.lmbda - pk.fit(X).lmbda).max() < 1e-12)
    True
    """
    as_choice("family", family, FAMILIES)
    check_estimator(estimator)
    _check_rereadable("chunks", chunks)
    if sample_weight is not None:
        _check_rereadable("sample_weight", sample_weight)

    def summarized(summarize: Callable[[Any, Any], Mergeable]) -> Mergeable:
        total: Mergeable | None = None
        for i, (chunk, weight) in enumerate(_pairs(chunks, sample_weight)):
            with naming(f"chunk {i}"):
                part = summarize(chunk, weight)
                total = part if total is None else merge(total, part)
        if total is None:
            raise ValueError("there are no chunks; there is nothing to do")
        return total

    return fit_summarized(
        summarized,
        family,
        shift=shift,
        column_names=column_names,
        standardize=standardize,
        lmbda=lmbda,
        ymax=ymax,
        bounds=bounds,
        n_threads=n_threads,
    )


def fit_summarized(
    summarized: Callable[[Callable[[Any, Any], Any]], Any],
    family: str,
    *,
    shift: ArrayLike = 0.0,
    column_names: Sequence[str] | None = None,
    n_threads: int | None = None,
    **options: Any,
) -> PowerFit:
    """The fit of data that are read as often as asked: ranges first, then sketches.

    ``summarized(summarize)`` calls ``summarize(chunk, weight)`` for all chunks and merges what it returns; `options`
    are those of `finish`.
    """

    def ranged(chunk: object, weight: ArrayLike | None) -> Range:
        return range_of(
            chunk, family, sample_weight=weight, shift=shift, column_names=column_names, n_threads=n_threads
        )  # fmt: skip

    def read(grid: Grid, chosen: BoolArray) -> Sketch:
        whole: Sketch = summarized(lambda chunk, weight: sketch(chunk, grid, sample_weight=weight, n_threads=n_threads))
        return whole.part(chosen)

    return finish(resolved(summarized(ranged).grid(), read), n_threads=n_threads, **options)


def resolved(grid: Grid, read: Callable[[Grid, BoolArray], Sketch]) -> Sketch:
    """The sketch of all data, columns that their grid does not resolve on finer ones.

    Parameters
    ----------
    grid : Grid
        For the range of the data.
    read : function
        ``read(grid, chosen)`` passes over the data and returns the sketch of the columns of the mask `chosen`; the
        grid has all columns.

    Returns
    -------
    Sketch
    """
    total = read(grid, np.ones(grid.n_features, dtype=bool))
    for _ in range(_REREADINGS):
        coarse = unresolved(total)
        if not coarse.any():
            break
        total = replaced(total, read(total.grid.refined(coarse), coarse), coarse)
    return total


def check_estimator(estimator: str) -> None:
    """Refuse estimators that need more than sums."""
    if as_choice("estimator", estimator, ("mle", *ESTIMATORS)) != "mle":
        raise ValueError(
            f"estimator={estimator!r} needs the order of all values, which sums over chunks do not hold; draw rows at "
            "random and fit these by powerkern.fit, or use 'mle'"
        )


@contextlib.contextmanager
def naming(chunk: str) -> Iterator[None]:
    """Errors name the chunk, from whose start they count rows."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"in {chunk}: {error}") from None


def _check_rereadable(name: str, chunks: object) -> None:
    if callable(chunks):
        return
    if isinstance(chunks, Iterator):
        raise TypeError(
            f"{name} is an iterator, which can be read only once, and a fit reads the data twice; pass a function that "
            "starts it anew (lambda: ...) or a list of chunks, or use extend, which needs one pass"
        )
    if not isinstance(chunks, Sequence) or isinstance(chunks, str):
        raise TypeError(
            f"{name} must be a list of chunks, or a function that returns an iterable of them, got "
            f"{type(chunks).__name__}; pass all rows in one array to powerkern.fit"
        )


def _pairs(chunks: Any, sample_weight: Any) -> Iterator[tuple[object, Any]]:
    """Chunks and their weights, from the start."""
    each = chunks() if callable(chunks) else chunks
    if sample_weight is None:
        return ((chunk, None) for chunk in each)
    weights = sample_weight() if callable(sample_weight) else sample_weight
    return zip(each, weights, strict=True)
