"""The effect of one additional value on lambda."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from powerkern._estimators.estimators import Estimator
from powerkern._fit.fit import fit
from powerkern._input.arrays import as_reals
from powerkern._typing import FloatArray

__all__ = ["sensitivity_curve"]


def sensitivity_curve(
    x: ArrayLike,
    points: ArrayLike,
    family: str = "yeo-johnson",
    estimator: Estimator | str = "mle",
    *,
    n_threads: int | None = None,
) -> FloatArray:
    """Sensitivity curve of an estimator of lambda: the effect of one additional value z.

    ``SC(z) = (n + 1) (lambda(x_1, ..., x_n, z) - lambda(x_1, ..., x_n))``: bounded for a robust estimator, 0 for
    distant values if it redescends, unbounded for maximum likelihood ([1]_, section 2.6).

    Parameters
    ----------
    x : (n,) array-like
        The sample; missing values (NaN) are omitted.
    points : (k,) array-like
        Values of z.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    estimator : Estimator or str, default "mle"
        An estimator, as in `powerkern.fit`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    (k,) ndarray
        The curve; 0 where z is NaN.

    Raises
    ------
    ValueError
        x or points is not one-dimensional, x has no values, or `powerkern.fit` refuses a value: the column in its
        message is the position of z.

    See Also
    --------
    powerkern.plot.sensitivity_plot : the curves of several estimators.

    Notes
    -----
    The samples with one additional value are fitted as the columns of one matrix.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sensitivity import sensitivity_curve
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> abs(sensitivity_curve(x, [0.0, 4.0, 8.0])).round()
    array([ 0., 17., 42.])
    >>> abs(sensitivity_curve(x, [0.0, 4.0, 8.0], estimator="robust")).round()
    array([1., 0., 0.])
    """
    sample, z = as_reals("x", x), as_reals("points", points)
    if sample.ndim != 1 or z.ndim != 1:
        raise ValueError(f"x and points must be one-dimensional, got shapes {sample.shape} and {z.shape}")
    sample = sample[~np.isnan(sample)]
    if not sample.size:
        raise ValueError("x has no values, or only missing ones; a sensitivity curve needs a sample")
    with_one_more = np.vstack([np.broadcast_to(sample[:, None], (sample.size, z.size)), z])

    def lambdas(data: FloatArray) -> FloatArray:
        return fit(data, family, estimator, n_threads=n_threads).lmbda

    curve: FloatArray = (sample.size + 1) * (lambdas(with_one_more) - lambdas(sample))
    return curve
