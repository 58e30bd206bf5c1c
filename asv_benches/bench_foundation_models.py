"""`PowerTransformer` in the preprocessing of TabICL and TabPFN, compared with scikit-learn's and their safeguards."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn import preprocessing
from sklearn.impute import SimpleImputer

from powerkern.sklearn import PowerTransformer

from ._measure import best_of

#: Rows to fit, new rows, columns, and columns on which scikit-learn is measured; its time is scaled to all.
N_ROWS, N_NEW, N_COLUMNS, N_MEASURED = 1_000, 500, 2_000, 100


def tables() -> tuple[np.ndarray, np.ndarray]:
    """Return rows to fit, and new rows with values beyond the range of the fitted ones."""
    rng = np.random.default_rng(0)
    sigma = rng.uniform(0.1, 1.0, N_COLUMNS)
    train, new = (rng.lognormal(sigma=sigma, size=(n, N_COLUMNS)) for n in (N_ROWS, N_NEW))
    train[:, ::10] = rng.random((N_ROWS, len(train[0, ::10]))) < 0.02
    return train, 3.0 * new


def tabicl(train: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Fit to `train` and transform `new`; if that fails, clip `new` to the range of `train` first, as TabICL does."""
    transformer = preprocessing.PowerTransformer().fit(train)
    transformer.transform(train)
    try:
        return transformer.transform(new)
    except ValueError:
        return transformer.transform(np.clip(new, train.min(axis=0), train.max(axis=0)))


def tabpfn(train: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Fit to the rows `train` and transform the rows `new` in TabPFN's five steps.

    They are: impute, transform without standardising, impute, standardise, impute.
    """
    for step in (
        SimpleImputer(),
        preprocessing.PowerTransformer(standardize=False),
        SimpleImputer(),
        preprocessing.StandardScaler(),
        SimpleImputer(),
    ):
        train, new = (np.where(np.isinf(rows), np.nan, rows) for rows in (train, new))
        train, new = step.fit_transform(train), step.transform(new)
    return new


def powerkern(train: np.ndarray, new: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Fit to the rows `train`; transform them and the rows `new`."""
    transformer = PowerTransformer(out_of_range="clip", infinite="missing", n_threads=n_threads).fit(train)
    transformer.transform(train)
    return transformer.transform(new)


class FoundationModels:
    """Time of the steps of TabICL or TabPFN with scikit-learn, relative to powerkern alone, on one thread."""

    params = (["tabicl", "tabpfn"],)
    param_names = ("sequence",)

    def setup(self, sequence: str) -> None:
        self.train, self.new = tables()

    def track_time_over_powerkern(self, sequence: str) -> float:
        theirs: Callable[[np.ndarray, np.ndarray], np.ndarray] = {"tabicl": tabicl, "tabpfn": tabpfn}[sequence]
        some = np.linspace(0, N_COLUMNS - 1, N_MEASURED).astype(int)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            powerkern(self.train[:, :10], self.new[:, :10])
            own = best_of(lambda: powerkern(self.train, self.new))
            peer = best_of(lambda: theirs(self.train[:, some], self.new[:, some]), at_least=1)
        return peer / own * N_COLUMNS / N_MEASURED
