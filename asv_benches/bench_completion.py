"""UV decomposition beside cmfrec's matrix factorisation and scikit-learn's imputers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix

from powerkern.completion import uv_decompose

from ._measure import InTurns

_REFERENCE = Path(__file__).resolve().parents[2] / "shared/refs/uv_reference.json"
METHODS = ("cd", "als")
#: Ridges that cmfrec is given: its best is over them.
_RIDGES = (0.05, 0.5, 5.0, 20.0)


def holes(m: int, n: int, rank: int, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of some rank and noise with holes, and the same without."""
    rng = np.random.default_rng(20240601)
    full = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) + 0.5 * rng.normal(size=(m, n))
    return np.where(rng.uniform(size=full.shape) < share, np.nan, full), full


def cmfrec_estimate(M: np.ndarray, rank: int, ridge: float, n_threads: int) -> np.ndarray:
    """U V as cmfrec finds it, by alternating least squares without biases, as here."""
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
        return uv_decompose(self.M, self.rank, method, random_state=0, n_threads=n_threads)

    def error(self, estimate: np.ndarray) -> float:
        """RMSE on what is missing."""
        missing = np.isnan(self.M)
        return float(np.sqrt(np.mean((estimate - self.full)[missing] ** 2)))


class Decompose(_Holes):
    """One decomposition."""

    params = ([2000], [500], [5], METHODS, [1, 2])
    param_names = ("m", "n", "rank", "method", "n_threads")

    def time_decompose(self, m: int, n: int, rank: int, method: str, n_threads: int) -> None:
        self.decompose(method, n_threads)

    def track_seconds(self, m: int, n: int, rank: int, method: str, n_threads: int) -> float:
        return self.compare({"powerkern": lambda: self.decompose(method, n_threads)})["powerkern"].wall

    track_seconds.unit = "s"  # type: ignore[attr-defined]


class BesideCmfrec(_Holes):
    """Speed and held-out error beside cmfrec's best, both on two threads."""

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


class Impute:
    """Time and error (in standard deviations) of imputers on a real matrix from which a fifth is taken."""

    params = (["UVImputer", "KNNImputer", "SimpleImputer"],)
    param_names = ("imputer",)

    def setup(self, imputer: str) -> None:
        from sklearn.datasets import load_breast_cancer
        from sklearn.impute import KNNImputer, SimpleImputer

        from powerkern.completion import UVImputer

        X = load_breast_cancer().data
        self.X = (X - X.mean(axis=0)) / X.std(axis=0)
        self.missing = np.random.default_rng(0).uniform(size=X.shape) < 0.2
        self.M = np.where(self.missing, np.nan, self.X)
        made = {"UVImputer": UVImputer(random_state=0), "KNNImputer": KNNImputer(), "SimpleImputer": SimpleImputer()}
        self.imputer = made[imputer]
        self.time_impute(imputer)  # compiles

    def time_impute(self, imputer: str) -> None:
        self.filled = self.imputer.fit_transform(self.M)

    def track_error(self, imputer: str) -> float:
        return float(np.sqrt(np.mean((self.filled - self.X)[self.missing] ** 2)))


class Lecture:
    """The 5 x 5 example of Leskovec, Rajaraman and Ullman, from all ones."""

    M = np.array([[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, np.nan, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, np.nan]])
    visits = [("U", 0, 0), ("V", 0, 0), ("U", 2, 0)]
    values = np.array([2.6, 1.6171003717472119, 1.1784655975269993])

    def track_error_of_first_elements(self) -> float:
        ones = np.ones((5, 2)), np.ones((2, 5))
        result = uv_decompose(self.M, 2, init=ones, order=self.visits, max_epochs=1)  # type: ignore[arg-type]
        return float(np.abs([result.U[0, 0], result.V[0, 0], result.U[2, 0]] - self.values).max())


class Trajectory:
    """The same example on and on, beside the reference."""

    def setup(self) -> None:
        if not _REFERENCE.exists():
            raise NotImplementedError
        self.reference = json.loads(_REFERENCE.read_text())

    def track_error(self) -> float:
        """Largest error after 1, 10 and 5,000 epochs, and of the errors of the first 20."""
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
    """Identity of results."""

    params = ([2000], [500], [5], METHODS)
    param_names = ("m", "n", "rank", "method")

    def track_differences(self, m: int, n: int, rank: int, method: str) -> int:
        one = self.decompose(method, 1)
        others = [self.decompose(method, n_threads) for n_threads in (2, 8)]
        return sum(int((a != b).sum()) for other in others for a, b in ((one.U, other.U), (one.V, other.V)))
