"""Wrapped correlations, detection of deviating cells and robust components, compared with NumPy's classical methods."""

from __future__ import annotations

import numpy as np

from powerkern.cellwise import ddc, wrap, wrapped_correlation, wrapped_pca

from ._measure import InTurns, best_of


def contaminated(n: int, p: int) -> np.ndarray:
    """Return columns that are correlated through five factors, with 5 % of the cells shifted by 10."""
    rng = np.random.default_rng(20240601)
    x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, p)) + rng.normal(size=(n, p))
    x[rng.random((n, p)) < 0.05] += 10.0
    return x


class Correlation(InTurns):
    """Time to estimate location and scale, wrap the columns and correlate them, relative to np.corrcoef."""

    params = ([(1000, 200), (2000, 500)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        self.x = contaminated(*shape)
        wrapped_correlation(self.x[:, :8])  # compiles

    def track_numpys(self, shape: tuple[int, int]) -> float:
        self.compare(
            {
                "powerkern": lambda: wrapped_correlation(self.x),
                "np.corrcoef": lambda: np.corrcoef(self.x, rowvar=False),
            }
        )
        return self.ratio("powerkern", "np.corrcoef")

    def track_cpu_of_numpys(self, shape: tuple[int, int]) -> float:
        """Track powerkern's CPU time relative to np.corrcoef's.

        Other processes affect CPU times less than elapsed times.
        """
        self.track_numpys(shape)
        return self.laps["powerkern"].cpu / self.laps["np.corrcoef"].cpu


class Wrapping(InTurns):
    """Time of wrapping, relative to the time of np.median of the columns."""

    params = ([(2000, 200)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        self.x = contaminated(*shape)
        wrap(self.x[:, :8])  # compiles

    def track_medians(self, shape: tuple[int, int]) -> float:
        self.compare({"powerkern": lambda: wrap(self.x), "np.median": lambda: np.median(self.x, axis=0)})
        return self.ratio("powerkern", "np.median")


class DeviatingCells:
    """Seconds to detect deviating cells, and the fraction of the planted deviating cells that are detected."""

    params = (["pairs", "wrapped"], [(1000, 200), (200, 1000)])
    param_names = ("search", "shape")

    def setup(self, search: str, shape: tuple[int, int]) -> None:
        if search == "pairs" and shape[1] > 200:
            raise NotImplementedError
        self.x = contaminated(*shape)
        ddc(self.x[:, :8], search=search)  # compiles

    def track_seconds(self, search: str, shape: tuple[int, int]) -> float:
        return best_of(lambda: ddc(self.x, search=search), at_least=3)

    def track_found(self, search: str, shape: tuple[int, int]) -> float:
        rng = np.random.default_rng(20240601)
        rng.normal(size=(shape[0], 5)), rng.normal(size=(5, shape[1])), rng.normal(size=shape)
        planted = rng.random(shape) < 0.05
        return float(ddc(self.x, search=search).flagged[planted].mean())


class Components(InTurns):
    """Time of robust principal components, relative to a singular value decomposition of the data."""

    params = ([(1000, 200)],)
    param_names = ("shape",)

    def setup(self, shape: tuple[int, int]) -> None:
        self.x = contaminated(*shape)
        wrapped_pca(self.x[:, :8], 2)  # compiles

    def track_svds(self, shape: tuple[int, int]) -> float:
        svd = {"SVD": lambda: np.linalg.svd(self.x - self.x.mean(axis=0), full_matrices=False)}
        self.compare({"powerkern": lambda: wrapped_pca(self.x, 5), **svd})
        return self.ratio("powerkern", "SVD")
