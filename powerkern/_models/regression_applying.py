"""Methods of `RegressionFit` that apply it to data: transforms, fitted values, residuals, predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerkern._engine.threads import thread_count
from powerkern._input.arguments import as_number
from powerkern._input.arrays import as_flag
from powerkern._input.reading import read_fitted
from powerkern._models.regression_model import RegressionModel
from powerkern._results.back_transform import Kind, back_transform
from powerkern._typing import FloatArray


class RegressionPredictions(RegressionModel):
    """Base class of `RegressionFit` with the methods that apply it to responses and covariates."""

    def transform(self, Y: object, *, n_threads: int | None = None) -> Any:
        """Return ``psi(lambda, y)`` of every response.

        Parameters
        ----------
        Y : (n, p) array-like, or (n,) where the fit was to one response
            NaN stays NaN.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `Y` if that is a data frame or series

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> fit = fit_regression(np.array([1.0, 2.0, 4.0, 9.0]), np.arange(4.0), lmbda=0.0)
        >>> bool(np.allclose(fit.transform(np.array([np.e])), 1.0))
        True
        """
        return self._raw.transform(Y, n_threads=n_threads)

    def inverse_transform(self, Z: object, *, n_threads: int | None = None) -> Any:
        """Undo `transform`: return the y with ``psi(lambda, y) = z``.

        A z outside the range of psi gives NaN, with a warning. Arguments are as for `transform`.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> y = np.array([1.0, 2.0, 4.0, 9.0])
        >>> fit = fit_regression(y, np.arange(4.0))
        >>> bool(np.allclose(fit.inverse_transform(fit.transform(y)), y))
        True
        """
        return self._raw.inverse_transform(Z, n_threads=n_threads)

    def fitted_values(self, covariates: object = None) -> FloatArray:
        """Return the fitted values ``covariates @ coef`` of ``psi(lambda, y)``: (n, p), or (n,) for one response.

        Parameters
        ----------
        covariates : array-like, optional
            Covariates as in `fit_regression`. The default is the fitted rows of positive weight, if the fit still has
            its data.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.allclose(fit.fitted_values([10.0]), fit.coef[0] + 10.0 * fit.coef[1]))
        True
        """
        with np.errstate(over="ignore", invalid="ignore"):
            fitted = self._linear_predictor(covariates) * self.scale + np.where(
                self._results.one.any(axis=1), self._location, 0.0
            )
        return self._shape_like_input(fitted)

    def residuals(self, Y: object = None, covariates: object = None, *, standardized: bool = False) -> FloatArray:
        """Return the residuals ``psi(lambda, y) - covariates @ coef``: (n, p), or (n,) for one response.

        Parameters
        ----------
        Y, covariates : array-like, optional
            Responses and covariates of the same rows. The default is the fitted rows of positive weight, if the fit
            still has its data.
        standardized : bool, default False
            Divide the residuals by `scale`. The quotients are finite even where psi overflows or underflows.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> x = np.arange(20.0)
        >>> fit = fit_regression(np.random.default_rng(0).lognormal(0.1 * x), x)
        >>> bool(np.allclose(np.mean(fit.residuals(standardized=True) ** 2), 1.0))
        True
        """
        standardized = as_flag("standardized", standardized)
        if (Y is None) != (covariates is None):
            raise ValueError("pass Y and covariates together, or neither to use the fitted data")
        if Y is None:
            problem = self._fitted_problem()
            values = problem.values
            matrix = values if isinstance(values, np.ndarray) else values.values
        else:
            matrix = read_fitted(Y, self.column_names, self.n_responses, what="Y").values
        linear = self._linear_predictor(covariates, Y)
        if matrix.shape != linear.shape:
            raise ValueError(
                f"Y has shape {matrix.shape}, but the fit and covariates give {linear.shape}; pass matching rows"
            )
        z = np.asarray(self.power_fit.transform(matrix.astype(np.float64).reshape(linear.shape)))
        rest = z - linear
        with np.errstate(over="ignore", invalid="ignore"):
            return self._shape_like_input(rest if standardized else rest * self.scale)

    def predict(
        self,
        covariates: object,
        kind: Kind = "median",
        *,
        quantile: float = 0.5,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Predict medians, means or quantiles of the responses, in the units of the responses.

        Parameters
        ----------
        covariates : (m, k) array-like
            Covariates, as in `fit_regression`; a data frame if the fit used a formula.
        kind : {"median", "mean", "quantile"}, default "median"
            "median" is ``psi^-1(eta)``, where ``eta = covariates @ coef``. "quantile" is
            ``psi^-1(eta + scale Phi^-1(quantile))``. "mean" is the integral of ``psi^-1(eta + scale z) phi(z)`` over z;
            see `PowerFit.inverse_mean`.
        quantile : float, default 0.5
            Between 0 and 1, for ``kind="quantile"``.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (m, p) ndarray, or (m,) where the fit was to one response
            NaN for responses that could not be fitted.

        Notes
        -----
        The range of psi has an end unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson), and the normal model
        puts some probability beyond it. A median or quantile beyond the end becomes the end of the domain: -shift
        (Box-Cox, lambda > 0), inf (lambda < 0) or -inf (Yeo-Johnson, lambda > 2). Means are conditional on the range.
        For -1 <= lambda < 0 (Box-Cox and the upper branch of Yeo-Johnson; 2 < lambda <= 3 for the lower branch) the
        integral diverges at the end. It is then cut at the valley between the bulk and the end, where value times
        density is smallest. If there is no valley, because the end is closer than ``2/sqrt(-lambda)`` scales, the mean
        is infinite.

        Coefficients and scale are treated as known, so in small samples the quantiles are slightly too narrow as
        bounds for new responses.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.regression import fit_regression
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=2000)
        >>> fit = fit_regression(np.exp(1.0 + x + 0.5 * rng.normal(size=2000)), x, lmbda=0.0)
        >>> bool(np.allclose(fit.predict([0.0]), np.exp(fit.coef[0])))
        True
        >>> bool(np.allclose(fit.predict([0.0], "mean"), np.exp(fit.coef[0] + fit.scale**2 / 2)))
        True
        """
        as_number("quantile", quantile, "(0, 1)")
        found = back_transform(
            self.power_fit._table, self._linear_predictor(covariates), 1.0, kind, quantile, thread_count(n_threads)
        )
        return self._shape_like_input(found)
