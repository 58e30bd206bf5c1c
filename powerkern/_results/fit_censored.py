"""Methods of `PowerFit` for censored cells, whose values are only known to lie in an interval."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from powerkern._engine.threads import thread_count
from powerkern._input.arguments import as_generator, each_column
from powerkern._input.arrays import Matrix, as_choice
from powerkern._input.censoring import Marks, given_limits, with_marks, without_flags
from powerkern._input.frames import by_name
from powerkern._input.messages import suggest_in_class
from powerkern._input.reading import read_fitted, wrap_like_input
from powerkern._results.back_transform import ends_of_range, invert
from powerkern._results.censored_cells import (
    conditional_draws,
    conditional_means,
    fractions_below,
    standardized_intervals,
)
from powerkern._results.fit_description import FitDescription
from powerkern._results.transforming import refuse_outside
from powerkern._typing import FloatArray, Limits

#: The scale of draws.
Scale = Literal["scores", "data"]


@suggest_in_class
class FitOfCensored(FitDescription):
    """Base class of `PowerFit` with its methods for censored cells, which lie below, above or between limits."""

    def expected(
        self,
        X: object,
        *,
        below: object = None,
        above: object = None,
        between: tuple[object, object] | None = None,
        limits: Limits | None = None,
        n_threads: int | None = None,
    ) -> Any:
        """Transform every column; replace each censored cell by its conditional expectation.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            As for `transform`.
        below, above, between, limits
            As in `powerkern.fit`. `limits` defaults to the limits of the fit.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `X`, as for `transform`
            Standardised scores, or raw transformed values with ``standardize=False``. Censored cells are NaN in columns
            that could not be fitted.

        Notes
        -----
        For a standardised limit t, a cell below it has the expectation ``-phi(t)/Phi(t)``, and a cell above it
        ``phi(t)/Phi(-t)``. Expectations vary less than the values they replace; for tests and regressions, use `draw`.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, "box-cox", limits=(0.5, None))
        >>> scores = fit.expected(x)
        >>> bool(np.allclose(scores[x > 0.5], fit.transform(x[x > 0.5]))), bool(np.ptp(scores[x <= 0.5]) == 0.0)
        (True, True)
        """
        matrix = self._read_marked(X, Marks(below, above, between), limits)
        z, censored, low, high = standardized_intervals(self._table, matrix, n_threads)
        z[censored] = conditional_means(low, high)
        return wrap_like_input(matrix, self._to_transform_scale(z))

    def draw(
        self,
        X: object,
        *,
        below: object = None,
        above: object = None,
        between: tuple[object, object] | None = None,
        limits: Limits | None = None,
        scale: Scale = "scores",
        rng: Any = None,
        n_threads: int | None = None,
    ) -> Any:
        """Draw each censored cell from its conditional distribution, for multiple imputation.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            As for `transform`.
        below, above, between, limits
            As in `powerkern.fit`. `limits` defaults to the limits of the fit.
        scale : {"scores", "data"}, default "scores"
            "scores": transform all cells, as `expected` does. "data": leave observed values unchanged, and return the
            draws in the units of the data.
        rng : int, numpy.random.Generator, or None
            Seed or generator of random numbers.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `X`, as for `transform`
            Censored cells are NaN in columns that could not be fitted.

        Notes
        -----
        Each draw is from the fitted normal distribution, truncated to the interval of the cell and to the range of the
        transform. Draws ignore the uncertainty of lambda, loc and scale. If this uncertainty matters, fit resampled
        rows.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, "box-cox", limits=(0.5, None))
        >>> drawn = fit.draw(x, scale="data", rng=1)
        >>> bool((drawn[x <= 0.5] <= 0.5).all()), bool((drawn[x > 0.5] == x[x > 0.5]).all())
        (True, True)
        """
        in_data = as_choice("scale", scale, get_args(Scale)) == "data"
        generator = as_generator(rng)
        matrix = self._read_marked(X, Marks(below, above, between), limits)
        z, censored, low, high = standardized_intervals(self._table, matrix, n_threads)
        columns = np.nonzero(censored)[1]
        first, last = ends_of_range(self._table)
        low = np.minimum(np.fmax(low, first[columns]), high)
        high = np.maximum(np.fmin(high, last[columns]), low)
        z[censored] = conditional_draws(low, high, generator)
        if not in_data:
            return wrap_like_input(matrix, self._to_transform_scale(z))
        values = np.array(matrix.values, dtype=np.float64)
        drawn = np.where(censored, z, np.nan)
        values[censored] = invert(self._table, drawn, thread_count(n_threads, z.size))[censored]
        return wrap_like_input(matrix, values)

    def fraction_below(self, limit: ArrayLike, *, n_threads: int | None = None) -> Any:
        """Return the probability that a value lies below a limit, under each column's fitted normal distribution.

        Parameters
        ----------
        limit : float or (n_features,) array-like
            One limit for all columns, or one per column; a series is aligned by label.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or a series indexed by the column labels
            NaN for columns that could not be fitted.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=2000)
        >>> pk.fit(x, "box-cox", limits=(0.5, None)).fraction_below([0.5]).round(2), (x < 0.5).mean().round(2)
        (array([0.25]), np.float64(0.25))
        """
        limits = each_column("limit", limit, self.n_features, self.column_names)
        return by_name(fractions_below(self._table, limits, thread_count(n_threads)), self.column_names)

    def _read_marked(self, X: object, marks: Marks, limits: Limits | None) -> Matrix:
        """Read the fitted columns of `X`, with the interval of every censored cell.

        `marks` are the arguments `below`, `above` and `between` of the user. `limits` are the detection limits; None
        uses the limits of the fit.
        """
        rest, marks = without_flags(X, marks)
        if self.column_names is None:  # else flags are among the other columns, which pass through
            X = rest
        matrix = read_fitted(X, self.column_names, self.n_features)
        given = self._spec.limits if limits is None else limits
        ends = None if given is None else given_limits(given, self.n_features, self.column_names)
        found = with_marks(matrix, X, marks, ends)
        counts = self._table.count_outside(found.values, 1)
        refuse_outside(found, counts, self._table, self.column_names)
        return found

    def _to_transform_scale(self, z: FloatArray) -> FloatArray:
        """Convert standardised scores to the scale of `transform`, which is raw with ``standardize=False``."""
        if self.standardize:
            return z
        return (self.loc + self.scale * z) * np.exp(self.log_factor)
