"""UV decomposition compared with cmfrec's matrix factorisation and scikit-learn's imputers."""

from __future__ import annotations

import functools
import json
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix

from powerkern.completion import uv_decompose

from ._measure import InTurns, best_of

_SHARED = Path(__file__).resolve().parents[2] / "shared"
_REFERENCE, _TABLES = _SHARED / "refs/uv_reference.json", _SHARED / "data"
METHODS = ("cd", "als")
#: Ridges for cmfrec, whose best result counts.
_RIDGES = (0.05, 0.5, 5.0, 20.0)


def holes(m: int, n: int, rank: int, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Return a noisy matrix of the given rank with missing entries (NaN), and the same matrix without missing entries.

    Parameters
    ----------
    m, n : int
        Shape.
    rank : int
        Rank of the matrix without noise.
    share : float
        Fraction of missing entries.
    """
    rng = np.random.default_rng(20240601)
    full = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) + 0.5 * rng.normal(size=(m, n))
    return np.where(rng.uniform(size=full.shape) < share, np.nan, full), full


def cmfrec_estimate(M: np.ndarray, rank: int, ridge: float, n_threads: int) -> np.ndarray:
    """Return the product U V fitted by cmfrec, which is set to powerkern's model: alternating least squares, no biases.

    Parameters
    ----------
    M : (m, n) ndarray
        The matrix; NaN is missing.
    rank : int
        Number of components.
    ridge : float
        Penalty on squared elements.
    n_threads : int
        Number of threads.
    """
    from cmfrec import CMF

    rows, columns = np.nonzero(~np.isnan(M))
    cells = coo_matrix((M[rows, columns], (rows, columns)), shape=M.shape)
    model = CMF(
        k=rank, lambda_=ridge, user_bias=False, item_bias=False, center=False, use_float=False, use_cg=False,
        precompute_for_predictions=False, nthreads=n_threads, verbose=False,
    ).fit(cells)  # fmt: skip
    return np.asarray(model.A_ @ model.B_.T)


class _Holes(InTurns):
    def setup(self, m: int, n: int, rank: int, *_: Any) -> None:
        self.M, self.full = holes(m, n, rank)
        self.rank = rank
        for method in METHODS:  # compiles
            self.decompose(method)

    def decompose(self, method: str, n_threads: int = 2) -> Any:
        return uv_decompose(self.M, self.rank, method, rng=0, n_threads=n_threads)

    def error(self, estimate: np.ndarray) -> float:
        """Return the root mean square error of `estimate` on the missing entries."""
        missing = np.isnan(self.M)
        return float(np.sqrt(np.mean((estimate - self.full)[missing] ** 2)))


class Decompose(_Holes):
    """Seconds of one decomposition."""

    params = ([2000], [500], [5], METHODS, [1, 2])
    param_names = ("m", "n", "rank", "method", "n_threads")

    def time_decompose(self, m: int, n: int, rank: int, method: str, n_threads: int) -> None:
        self.decompose(method, n_threads)

    def track_seconds(self, m: int, n: int, rank: int, method: str, n_threads: int) -> float:
        return self.compare({"powerkern": lambda: self.decompose(method, n_threads)})["powerkern"].wall

    track_seconds.unit = "s"  # type: ignore[attr-defined]


class BesideCmfrec(_Holes):
    """Speed of a decomposition relative to cmfrec, and held-out error relative to cmfrec's, on two threads.

    cmfrec's error is taken at its best ridge.
    """

    params = ([2000], [500], [5], METHODS)
    param_names = ("m", "n", "rank", "method")

    def setup(self, m: int, n: int, rank: int, *_: Any) -> None:
        try:
            import cmfrec  # noqa: F401
        except ImportError:
            raise NotImplementedError from None
        super().setup(m, n, rank)

    def track_error_over_best(self, m: int, n: int, rank: int, method: str) -> float:
        theirs = min(self.error(cmfrec_estimate(self.M, rank, ridge, 2)) for ridge in _RIDGES)
        return self.error(self.decompose(method).reconstruct()) / theirs

    def track_speedup(self, m: int, n: int, rank: int, method: str) -> float:
        calls = {
            "powerkern": lambda: self.decompose(method),
            "cmfrec": lambda: cmfrec_estimate(self.M, rank, _RIDGES[0], 2),
        }
        self.compare(calls)
        return self.ratio("cmfrec", "powerkern")


# --- imputers, by default ---------------------------------------------------------------------------------


def _standardized(X: np.ndarray) -> np.ndarray:
    varying = X[:, X.std(axis=0) > 0.0]
    return np.asarray((varying - varying.mean(axis=0)) / varying.std(axis=0))


def ratings(m: int = 1000, n: int = 300, rank: int = 5) -> np.ndarray:
    """Return ratings from 1 to 5 of n items by m users.

    They are rounded sums of user biases, item biases, a matrix of low rank, and noise.
    """
    rng = np.random.default_rng(3)
    full = 3.5 + 0.5 * rng.normal(size=(m, 1)) + 0.6 * rng.normal(size=(1, n))
    full = full + 0.6 * (rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n))) / np.sqrt(rank)
    return np.clip(np.round(full + 0.7 * rng.normal(size=(m, n))), 1.0, 5.0)


def complete_table(name: str) -> np.ndarray:
    """Return a table without missing values, with standardised columns; ratings are standardised as a whole."""
    from sklearn.datasets import load_breast_cancer, load_digits

    if name == "ratings":
        R = ratings()
        return np.asarray((R - R.mean()) / R.std())
    if name in ("digits", "cancer"):
        return _standardized({"digits": load_digits, "cancer": load_breast_cancer}[name]().data)
    path = _TABLES / f"data_{name}.csv"
    if not path.exists():
        raise NotImplementedError
    return _standardized(np.loadtxt(path, delimiter=",", skiprows=1))


def soft_impute(M: np.ndarray, truth: np.ndarray, n_steps: int = 12) -> np.ndarray:
    """Fill gaps by soft-thresholding singular values, along a path of `n_steps` thresholds with warm starts.

    Return the result with the smallest error relative to `truth`, the matrix without gaps.
    """
    missing = np.isnan(M)
    filled = np.where(missing, np.nanmean(M, axis=0), M)
    top = np.linalg.norm(np.where(missing, 0.0, M), 2)
    best, least = filled, np.inf
    for threshold in top * np.geomspace(0.5, 1e-3, n_steps):
        for _ in range(30):
            squares, V = np.linalg.eigh(filled.T @ filled)
            kept = np.maximum(1.0 - threshold / np.sqrt(np.maximum(squares, np.finfo(float).tiny)), 0.0)
            estimate = ((filled @ V) * kept) @ V.T
            change = np.sum((estimate - filled)[missing] ** 2) / np.sum(filled**2)
            filled = np.where(missing, estimate, M)
            if change < 1e-6:
                break
        error = float(np.mean((filled - truth)[missing] ** 2))
        best, least = (filled, error) if error < least else (best, least)
    return np.asarray(best)


def cmfrec_filled(M: np.ndarray, ridge: float = 10.0) -> np.ndarray:
    """Fill gaps by cmfrec with biases, the penalty `ridge`, and otherwise default options."""
    from cmfrec import CMF

    rows, columns = np.nonzero(~np.isnan(M))
    gaps = np.nonzero(np.isnan(M))
    k = min(40, min(M.shape) - 1)
    model = CMF(k=k, lambda_=ridge, nthreads=2, verbose=False)
    model.fit(coo_matrix((M[rows, columns], (rows, columns)), shape=M.shape))
    filled = M.copy()
    filled[gaps] = model.predict(*gaps)
    return filled


def iterative_filled(M: np.ndarray) -> np.ndarray:
    """Fill gaps by scikit-learn's IterativeImputer with its defaults."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge
        return np.asarray(IterativeImputer(random_state=0).fit_transform(M))


class Impute(InTurns):
    """Time of imputers with their defaults, and their root mean square error in standard deviations.

    A fifth of each table is missing, but nine tenths of the ratings. For cmfrec the best of several ridges is chosen,
    and for softImpute the best point of its path, by the error on the missing entries.
    """

    params = (["philips", "cancer"],)
    param_names = ("table",)
    #: Tables on which these peers take less than half a minute; on other tables other peers have a smaller error.
    patience = {"IterativeImputer": ("philips", "cancer"), "softImpute": ("philips", "cancer", "digits", "mortality")}

    def setup(self, table: str) -> None:
        from sklearn.impute import KNNImputer

        from powerkern.sklearn import UVImputer

        self.X = complete_table(table)
        share = 0.9 if table == "ratings" else 0.2
        self.missing = np.random.default_rng(0).uniform(size=self.X.shape) < share
        self.M = np.where(self.missing, np.nan, self.X)
        calls: dict[str, Any] = {
            "powerkern": lambda: UVImputer(random_state=0).fit_transform(self.M),
            "KNNImputer": lambda: KNNImputer().fit_transform(self.M),
            "softImpute": lambda: soft_impute(self.M, self.X),
            "IterativeImputer": lambda: iterative_filled(self.M),
        }
        if find_spec("cmfrec"):
            calls["cmfrec"] = lambda: cmfrec_filled(self.M)
        self.calls = {name: call for name, call in calls.items() if table in self.patience.get(name, (table,))}
        self.calls["powerkern"]()  # compiles

    def error(self, filled: np.ndarray) -> float:
        return float(np.sqrt(np.mean((filled - self.X)[self.missing] ** 2)))

    def time_powerkern(self, table: str) -> None:
        self.calls["powerkern"]()

    def track_error(self, table: str) -> float:
        return self.error(self.calls["powerkern"]())

    def track_error_over_best(self, table: str) -> float:
        return self.track_error(table) / min(error for error, _ in peers(table).values())

    def track_error_with_a_wild_cell(self, table: str) -> float:
        """Error if one observed value is set to a million standard deviations, relative to the error without it."""
        clean, seen = self.M, np.argwhere(~self.missing)
        i, j = seen[np.random.default_rng(5).integers(len(seen))]
        error = self.track_error(table)
        self.M = clean.copy()
        self.M[i, j] = 1e6
        return self.track_error(table) / error

    def track_times_faster_than_best(self, table: str) -> float:
        """Speed of powerkern relative to the peer with the smallest error."""
        found = peers(table)
        return self._lead([min(found, key=lambda name: found[name][0])])

    def track_times_faster_than_fastest(self, table: str) -> float:
        """Speed of powerkern relative to the fastest peer, whatever this peer's error.

        The two peers that were fastest in the first call are timed.
        """
        found = peers(table)
        return self._lead(sorted(found, key=lambda name: found[name][1])[:2])

    def _lead(self, names: list[str]) -> float:
        self.compare({name: self.calls[name] for name in ("powerkern", *names)})
        return min(self.ratio(name, "powerkern") for name in names)


@functools.cache
def peers(table: str) -> dict[str, tuple[float, float]]:
    """Return each peer's error and the seconds of one call; calls are not repeated because some peers are slow."""
    bench, found = Impute(), {}
    bench.setup(table)
    for name, call in bench.calls.items():
        start = time.perf_counter()
        filled = call()
        found[name] = bench.error(filled), time.perf_counter() - start
    del found["powerkern"]
    if "cmfrec" in found:
        tuned = min(bench.error(cmfrec_filled(bench.M, ridge)) for ridge in (0.1, 1.0, 3.0, 20.0))
        found["cmfrec"] = min(found["cmfrec"][0], tuned), found["cmfrec"][1]
    return found


class Lecture:
    """The 5 x 5 example of Leskovec, Rajaraman and Ullman, starting from all ones."""

    M = np.array([[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, np.nan, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, np.nan]])
    visits = [("U", 0, 0), ("V", 0, 0), ("U", 2, 0)]
    values = np.array([2.6, 1.6171003717472119, 1.1784655975269993])

    def track_error_of_first_elements(self) -> float:
        ones = np.ones((5, 2)), np.ones((2, 5))
        result = uv_decompose(self.M, 2, init=ones, order=self.visits, max_epochs=1)  # type: ignore[arg-type]
        return float(np.abs([result.U[0, 0], result.V[0, 0], result.U[2, 0]] - self.values).max())


class Trajectory:
    """The example of `Lecture` over many epochs, compared with reference values."""

    def setup(self) -> None:
        if not _REFERENCE.exists():
            raise NotImplementedError
        self.reference = json.loads(_REFERENCE.read_text())

    def track_error(self) -> float:
        """Largest error of U and V after 1 and 10 epochs, of U V after 5,000, and of the first 20 RMSEs."""
        ones = np.ones((5, 2)), np.ones((2, 5))
        runs = {epochs: uv_decompose(Lecture.M, 2, init=ones, max_epochs=epochs, tol=0) for epochs in (1, 10, 5000)}
        first, tenth = self.reference["epoch1_order_U_rowmajor_then_V_rowmajor"], self.reference["epoch10"]
        pairs = [
            (runs[1].U, first["U"]),
            (runs[1].V, first["V"]),
            (runs[10].U, tenth["U"]),
            (runs[10].V, tenth["V"]),
            (runs[5000].reconstruct(), self.reference["epoch5000"]["P"]),
            (runs[5000].history[:20], self.reference["rmse_history_first20"]),
        ]
        return float(max(np.abs(np.subtract(found, expected)).max() for found, expected in pairs))


class Threads(_Holes):
    """Number of results that change in any bit with the number of threads."""

    params = ([2000], [500], [5], METHODS)
    param_names = ("m", "n", "rank", "method")

    def track_differences(self, m: int, n: int, rank: int, method: str) -> int:
        one = self.decompose(method, 1)
        others = [self.decompose(method, n_threads) for n_threads in (2, 8)]
        return sum(int((a != b).sum()) for other in others for a, b in ((one.U, other.U), (one.V, other.V)))


# --- ratings ----------------------------------------------------------------------------------------------


class Ratings(InTurns):
    """Fits to a table in which a tenth of the ratings are known."""

    def setup(self) -> None:
        from powerkern.completion import fit_ratings

        self.R = ratings()
        known = np.random.default_rng(0).uniform(size=self.R.shape) >= 0.9
        self.known, self.hidden = np.nonzero(known), np.nonzero(~known)
        value = self.R[self.known]
        self.calls: dict[str, Any] = {"powerkern": lambda: fit_ratings((*self.known, value), rng=0)}
        self.model = self.calls["powerkern"]()
        self.newcomer = np.arange(0, 300, 10), self.R[0, ::10]

    def error(self, model: Any) -> float:
        return float(np.sqrt(np.mean((model.predict(*self.hidden) - self.R[self.hidden]) ** 2)))

    def time_fit(self) -> None:
        self.calls["powerkern"]()

    def time_fold_in(self) -> None:
        self.model.fold_in(*self.newcomer)

    def track_microseconds_of_fold_in(self) -> float:
        return 1e6 * best_of(lambda: self.model.fold_in(*self.newcomer))


class RatingsBesideCmfrec(Ratings):
    """Speed of a fit of ratings relative to cmfrec, and held-out error relative to cmfrec's.

    cmfrec has the true rank, and its error is taken at its best ridge.
    """

    def setup(self) -> None:
        if not find_spec("cmfrec"):
            raise NotImplementedError
        super().setup()
        self.calls["cmfrec"] = self._cmfrec

    def _cmfrec(self, ridge: float = 10.0) -> Any:
        from cmfrec import CMF

        model = CMF(k=5, lambda_=ridge, nthreads=2, verbose=False)
        return model.fit(coo_matrix((self.R[self.known], self.known), shape=self.R.shape))

    def track_error_over_best(self) -> float:
        return self.error(self.model) / min(self.error(self._cmfrec(ridge)) for ridge in (0.1, 1.0, 3.0, 10.0, 20.0))

    def track_times_faster(self) -> float:
        self.compare(self.calls)
        return self.ratio("cmfrec", "powerkern")
