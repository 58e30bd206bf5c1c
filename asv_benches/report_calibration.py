"""Brier scores of outlier probabilities with and without a given contamination, on labelled data.

python -m asv_benches.report_calibration

In each labelled data set of scikit-learn, one class is made rare: it has 2 to 20 % of the rows. Three simulated sets
are added. Seven detectors score each set. The columns of the table are the contaminations given: none, the true
fraction of outliers, half of this fraction, and twice this fraction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pyod.models.ecod import ECOD
from pyod.models.hbos import HBOS
from pyod.models.knn import KNN
from pyod.models.pca import PCA
from sklearn import datasets
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import scale
from sklearn.svm import OneClassSVM

from powerkern.outliers import brier_score, outlier_probability

SHARES = (0.02, 0.05, 0.1, 0.2)
DETECTORS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "kNN": lambda X: KNN().fit(X).decision_scores_,
    "LOF": lambda X: -LocalOutlierFactor().fit(X).negative_outlier_factor_,
    "isolation forest": lambda X: -IsolationForest(random_state=0).fit(X).score_samples(X),
    "one-class SVM": lambda X: -OneClassSVM(nu=0.2).fit(X).score_samples(X),
    "ECOD": lambda X: ECOD().fit(X).decision_scores_,
    "HBOS": lambda X: HBOS().fit(X).decision_scores_,
    "PCA": lambda X: PCA().fit(X).decision_scores_,
}
RULES: dict[str, dict[str, Any]] = {
    "mean + nMAD": {},
    "median + nMAD": {"center": "median"},
    "Huber": {"method": "huber"},
    "linear": {"method": "linear"},
}


def one_class_rare(X: np.ndarray, y: np.ndarray, rare: int, share: float, rng: np.random.Generator) -> Any:
    """Return data in which one class is rare, and the mask of its rows.

    Parameters
    ----------
    X : (n, p) ndarray
        The data.
    y : (n,) ndarray
        Classes.
    rare : int
        The class that becomes rare.
    share : float
        Its number of rows over that of all other classes; at least 4 rows are kept.
    rng : numpy.random.Generator
        Source of the choice of rows.
    """
    inliers, outliers = np.flatnonzero(y != rare), np.flatnonzero(y == rare)
    kept = rng.choice(outliers, min(max(4, int(share * inliers.size)), outliers.size), replace=False)
    rows = np.concatenate([inliers, kept])
    return X[rows], y[rows] == rare


def tables() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield data and labels: 14 sets for each fraction of outliers."""
    rng = np.random.default_rng(0)
    sources = (datasets.load_iris, (0, 1, 2)), (datasets.load_wine, (0, 1, 2)), (datasets.load_breast_cancer, (0,))
    labelled = [(loader(return_X_y=True), classes) for loader, classes in sources]
    labelled.append((datasets.load_digits(n_class=4, return_X_y=True), (0, 1, 2, 3)))
    for share in SHARES:
        for (X, y), classes in labelled:
            yield from (one_class_rare(X, y, rare, share, rng) for rare in classes)
        n = int(500 * share)
        labels = np.repeat([False, True], [500 - n, n])
        yield np.vstack([rng.normal(size=(500 - n, 5)), rng.uniform(-6, 6, size=(n, 5))]), labels
        yield np.vstack([rng.normal(size=(500 - n, 5)), rng.normal(4, 0.3, size=(n, 5))]), labels
        yield np.vstack([rng.lognormal(size=(500 - n, 3)), rng.lognormal(2.5, 0.3, size=(n, 3))]), labels


def main() -> None:
    warnings.simplefilter("ignore")
    scorings = [(detect(scale(X)), y) for X, y in tables() for detect in DETECTORS.values()]
    scorings = [(scores, y) for scores, y in scorings if np.isfinite(scores).all()]
    base = np.mean([y.mean() * (1.0 - y.mean()) for _, y in scorings])
    print(f"{len(scorings)} scorings; base rate for every score {base:.4f}")
    print(f"{'':15s}   default      true      half    double")
    for name, rule in RULES.items():
        row = []
        for factor in (None, 1.0, 0.5, 2.0):
            shares = [None if factor is None else min(0.5, factor * float(y.mean())) for _, y in scorings]
            briers = [
                brier_score(y, outlier_probability(scores, contamination=share, **rule))
                for (scores, y), share in zip(scorings, shares, strict=True)
            ]
            row.append(float(np.mean(briers)))
        print(f"{name:15s}" + "".join(f"{value:10.4f}" for value in row))


if __name__ == "__main__":
    main()
