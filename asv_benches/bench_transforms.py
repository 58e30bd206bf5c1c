"""Box-Cox and Yeo-Johnson of a vector, plain and standardised, compared with scipy.special and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special
from sklearn.preprocessing import PowerTransformer

from powerkern.kernels.transforms import elementwise

from ._measure import best_of, exp_units

Job = Callable[[np.ndarray, np.ndarray], Any]

#: One lambda for which a cheaper logarithm is accurate enough, one for which it is not.
LMBDAS = [0.5, 9.0]
SIZES = [10_000]
LIBRARIES = ["powerkern", "scipy", "scikit-learn"]


def _scipy_yeojohnson(x: np.ndarray, lmbda: float) -> np.ndarray:
    y = scipy.special.boxcox1p(np.abs(x), np.where(x < 0.0, 2.0 - lmbda, lmbda))
    return np.copysign(y, x)


def _scipy_inv_yeojohnson(y: np.ndarray, lmbda: float) -> np.ndarray:
    x = scipy.special.inv_boxcox1p(np.abs(y), np.where(y < 0.0, 2.0 - lmbda, lmbda))
    return np.copysign(x, y)


def _sklearn(family: str, lmbda: float) -> PowerTransformer:
    transformer = PowerTransformer(method=family, standardize=False).fit(np.arange(1.0, 4.0)[:, None])
    transformer.lambdas_ = np.array([lmbda])
    return transformer


def jobs(job: str, lmbda: float) -> dict[str, Job]:
    """Return for each library a function of (x, out) that transforms a vector and writes the result to `out`."""
    if job == "boxcox":
        peer = _sklearn("box-cox", lmbda)
        return {
            "powerkern": lambda x, out: elementwise.boxcox_array(x, lmbda, out),
            "scipy": lambda x, out: scipy.special.boxcox(x, lmbda, out=out),
            "scikit-learn": lambda x, out: peer.transform(x[:, None]),
        }
    if job == "inv_boxcox":
        peer = _sklearn("box-cox", lmbda)
        return {
            "powerkern": lambda y, out: elementwise.inv_boxcox_array(y, lmbda, out),
            "scipy": lambda y, out: scipy.special.inv_boxcox(y, lmbda, out=out),
            "scikit-learn": lambda y, out: peer.inverse_transform(y[:, None]),
        }
    if job == "yeojohnson":
        peer = _sklearn("yeo-johnson", lmbda)
        return {
            "powerkern": lambda x, out: elementwise.yeojohnson_array(x, lmbda, out),
            "scipy": lambda x, out: _scipy_yeojohnson(x, lmbda),
            "scikit-learn": lambda x, out: peer.transform(x[:, None]),
        }
    if job == "inv_yeojohnson":
        peer = _sklearn("yeo-johnson", lmbda)
        return {
            "powerkern": lambda y, out: elementwise.inv_yeojohnson_array(y, lmbda, out),
            "scipy": lambda y, out: _scipy_inv_yeojohnson(y, lmbda),
            "scikit-learn": lambda y, out: peer.inverse_transform(y[:, None]),
        }
    raise ValueError(job)


JOBS = ["boxcox", "inv_boxcox", "yeojohnson", "inv_yeojohnson"]


def values(job: str, lmbda: float, n: int) -> np.ndarray:
    """Return lognormal or normal data as input of a transform, and their transforms as input of an inverse."""
    x = np.random.default_rng(20240601).standard_normal(n)
    if "boxcox" in job:
        x = np.exp(x)
    forward = job.removeprefix("inv_")
    if forward == job:
        return x
    out = np.empty(n)
    jobs(forward, lmbda)["powerkern"](x, out)
    return out


class Transform:
    """Time of a transform of n values to another array, in passes of np.exp."""

    params = (JOBS, LMBDAS, SIZES)
    param_names = ("job", "lmbda", "n")

    def track_exp_units(self, job: str, lmbda: float, n: int) -> float:
        x, out, work = values(job, lmbda, n), np.empty(n), jobs(job, lmbda)["powerkern"]
        return exp_units(lambda: work(x, out), n)

    track_exp_units.unit = "np.exp passes"  # type: ignore[attr-defined]


class InPlace:
    """Time of a transform that overwrites its input, in passes of np.exp."""

    params = (JOBS, LMBDAS[:1], SIZES)
    param_names = ("job", "lmbda", "n")

    def track_exp_units(self, job: str, lmbda: float, n: int) -> float:
        x = values(job, lmbda, n)
        y, work = np.empty(n), jobs(job, lmbda)["powerkern"]

        def in_place() -> None:
            y[:] = x
            work(y, y)

        return exp_units(in_place, n) - exp_units(lambda: np.copyto(y, x), n)

    track_exp_units.unit = "np.exp passes"  # type: ignore[attr-defined]


class Ratio:
    """Speed of a transform to another array, relative to each peer."""

    params = (JOBS, LIBRARIES[1:], LMBDAS, SIZES)
    param_names = ("job", "peer", "lmbda", "n")

    def setup(self, job: str, peer: str, lmbda: float, n: int) -> None:
        self.x, self.out = values(job, lmbda, n), np.empty(n)

    def track_speedup(self, job: str, peer: str, lmbda: float, n: int) -> float:
        ours, theirs = jobs(job, lmbda)["powerkern"], jobs(job, lmbda)[peer]
        return best_of(lambda: theirs(self.x, self.out)) / best_of(lambda: ours(self.x, self.out))

    track_speedup.unit = "times faster"  # type: ignore[attr-defined]


class Accuracy:
    """Largest error of Box-Cox for values whose lambda ln x is up to 700, in units in the last place."""

    params = (["powerkern", "scipy"], [-50.0, 0.5, 20.0])
    param_names = ("library", "lmbda")

    def track_ulp(self, library: str, lmbda: float) -> float:
        log = np.random.default_rng(20240601).uniform(-700.0, 700.0, 1000) / max(abs(lmbda), 1.0)
        x, out = np.exp(log), np.empty(1000)
        jobs("boxcox", lmbda)[library](x, out)
        with mpmath.workprec(2500):
            exact = [mpmath.expm1(lmbda * mpmath.log(mpmath.mpf(v))) / lmbda for v in x]
            return max(
                float(abs(mpmath.mpf(y) - e) / np.spacing(abs(float(e)))) for y, e in zip(out, exact, strict=True)
            )

    track_ulp.unit = "ulp"  # type: ignore[attr-defined]
