"""The figures and examples of Raymaekers & Rousseeuw (2021), as tables.

python -m asv_benches.report_paper [--only PART] [--replicates N]

Parts: sensitivity (Fig. 5), simulation (Figs. 6 to 8), default (RewML compared with the rules of the paper), trimmed
(the value that the trimmed likelihood estimates), topgear (section 4.1), glass (4.2, Fig. 11), dposs (4.3). The data of
the last three are read from /shared/data beside the checkout, if present.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

import powerkern as pk
from powerkern.cellwise import wrapped_pca

from .bench_robust import _SHARED, simulated
from .report_sides import simulated as simulated_by_side

#: Estimators of the paper, and RewML by R's rules.
ESTIMATORS: dict[str, Any] = {
    "ML": pk.ML(),
    "Carroll": pk.Carroll(),
    "MTL 95": pk.MTL(h=0.95),
    "MTL 90": pk.MTL(h=0.9),
    "adaptive RewML, nr": pk.AdaptiveRewML(rectify="none"),
    "adaptive RewML": pk.AdaptiveRewML(),
    "RewML": pk.RewML(),
    "adaptive RewML, fixed": pk.AdaptiveRewML(n_reweight=2, adaptive_cutoff=False),
    "RewML, R": pk.RewML(convention="cellwise"),
}
CASES = [("yeo-johnson", 0.5), ("yeo-johnson", 1.0), ("yeo-johnson", 1.5), ("box-cox", 0.0), ("box-cox", 1.0)]
DISTANCES = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
SHARES = [0.0, 0.025, 0.05, 0.075, 0.1, 0.125, 0.15]


def fit(X: np.ndarray, family: str, estimator: Any) -> pk.PowerFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns that are not certified, or constant
        return pk.fit(X, family, estimator)


def table(title: str, columns: list[str], rows: Iterator[tuple[str, list[float]]], digits: int) -> None:
    """Print a table.

    Parameters
    ----------
    title : str
        Its title.
    columns : list of str
        Headings.
    rows : iterator of (str, list of float)
        Names and values of the rows.
    digits : int
        Number of decimals.
    """
    print(f"\n{title}\n{'':28s}" + "".join(f"{column:>9s}" for column in columns))
    for name, values in rows:
        print(f"{name:28s}" + "".join(f"{value:9.{digits}f}" for value in values))


# --- sections 2.6 and 3 -------------------------------------------------------------------------------


def sensitivity_curve(x: np.ndarray, points: np.ndarray, family: str, estimator: Any) -> np.ndarray:
    """Return the change of lambda when one value is added to a column, times n + 1, for each value in `points`.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    points : (k,) ndarray
        Values to add.
    family : str
        The transform.
    estimator : Estimator or str
        The estimator.
    """
    with_one_more = np.vstack([np.repeat(x[:, np.newaxis], len(points), axis=1), points])
    change = pk.fit(with_one_more, family, estimator).lmbda - pk.fit(x, family, estimator).lmbda
    return (len(x) + 1) * change


def sensitivity(replicates: int) -> None:
    """Print Fig. 5: sensitivity curves for a value added to 99 normal quantiles (Box-Cox: exponentials)."""
    base = ndtri(np.arange(1, 100) / 100)
    z = np.array([-10.0, -6.0, -3.0, -2.5, -2.0, -1.0, 0.0, 1.0, 2.0, 2.5, 3.0, 6.0, 10.0])
    for family in ("yeo-johnson", "box-cox"):
        x, points = (np.exp(base), np.exp(z)) if family == "box-cox" else (base, z)

        def curves(x: np.ndarray = x, points: np.ndarray = points, family: str = family) -> Iterator[Any]:
            for name, estimator in ESTIMATORS.items():
                as_it_is = estimator if name == "ML" else replace(estimator, prestandardize="none")
                yield name, list(sensitivity_curve(x, points, family, as_it_is))

        table(f"Fig. 5, {family}: 100 (lambda with z - lambda)", [f"{v:g}" for v in z], curves(), 2)


def simulation(replicates: int) -> None:
    """Print Figs. 6 to 8: bias and mean squared error by distance of 10 % outliers, and by their fraction at k = 10."""

    @functools.cache
    def errors(case: tuple[str, float], at: tuple[float, float], name: str) -> np.ndarray:
        return fit(simulated(*case, *at, replicates), case[0], ESTIMATORS[name]).lmbda - case[1]

    def rows(case: tuple[str, float], settings: list[tuple[float, float]], power: int) -> Iterator[Any]:
        for name in ESTIMATORS:
            yield name, [float(np.mean(errors(case, at, name) ** power)) for at in settings]

    by_distance, by_share = [(0.1, k) for k in DISTANCES], [(share, 10.0) for share in SHARES]
    for case in CASES:
        for power, what in ((1, "bias"), (2, "mean squared error")):
            title = f"{case[0]}, lambda = {case[1]:g}, {what}"
            ks, shares = [f"k = {k:g}" for k in DISTANCES], [f"{share:.1%}" for share in SHARES]
            table(f"{title}, 10 % of outliers at k", ks, rows(case, by_distance, power), 3)
            table(f"{title}, outliers at k = 10", shares, rows(case, by_share, power), 3)


def default(replicates: int) -> None:
    """Print mean squared errors of the default, the paper's rules, and ML without far values, by sample size."""
    settings = [(0.0, 0.0), *((share, k) for share in (0.05, 0.1, 0.15) for k in (3.0, 4.0, 6.0, 10.0)), (0.1, -6.0)]
    columns = ["clean", *(f"{share:.0%} {k:g}" for share, k in settings[1:])]
    methods: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
        name: lambda X, family, estimator=ESTIMATORS[name]: fit(X, family, estimator).lmbda
        for name in ("ML", "adaptive RewML", "RewML", "adaptive RewML, fixed")
    }
    methods["ML of |z| <= 3"] = _of_those_within_3

    for n, few in ((50, replicates), (100, replicates), (400, max(1, replicates // 2))):
        for family, lmbda in itertools.product(("box-cox", "yeo-johnson"), (0.0, 0.5, 1.0)):
            samples = [
                simulated_by_side((family, lmbda), n, share, abs(k), "high" if k >= 0.0 else "low", few)
                for share, k in settings
            ]

            def rows(samples: list[np.ndarray] = samples, family: str = family, lmbda: float = lmbda) -> Iterator[Any]:
                for name, of in methods.items():
                    yield name, [1000.0 * float(np.mean((of(X, family) - lmbda) ** 2)) for X in samples]

            table(f"{family} {lmbda:g}, n = {n}: 1000 MSE, share and distance of outliers", columns, rows(), 1)


def _of_those_within_3(X: np.ndarray, family: str) -> np.ndarray:
    """Return the maximum likelihood lambda of each column of `X`, for its values within 3 MADs of the median.

    Under Box-Cox, median and MAD are those of the logs.
    """
    y = np.log(X) if family == "box-cox" else X
    near = np.abs(y - np.median(y, axis=0)) <= 3.0 * _mad(y)
    return fit(np.where(near, X, np.nan), family, "mle").lmbda


def trimmed(replicates: int) -> None:
    """Print the lambda of trimmed likelihood for 20,000 quantiles of exp(sd Z) (true lambda 0) and of Z (1)."""
    z = ndtri((np.arange(20_000) + 0.5) / 20_000)

    def rows() -> Iterator[Any]:
        for sd in (0.1, 0.5, 1.0, 2.0):
            for how in ("none", "mad"):
                found = [
                    fit(np.exp(sd * z), "box-cox", {"estimator": "mtl", "h": h, "prestandardize": how}).lmbda[0]
                    for h in (0.95, 0.9)
                ]
                yield f"exp({sd:g} Z), {how}", [sd * lmbda for lmbda in found]
        found = [fit(z, "yeo-johnson", {"estimator": "mtl", "h": h}).lmbda[0] for h in (0.95, 0.9)]
        yield "Z, Yeo-Johnson, mad", found

    table("Trimmed likelihood without outliers: lambda times sd", ["95 %", "90 %"], rows(), 4)


# --- section 4 ----------------------------------------------------------------------------------------


@functools.cache
def data(file: str) -> tuple[list[str], np.ndarray]:
    """Return names and columns of a file of shared/data; raise FileNotFoundError if there is none."""
    read = np.genfromtxt(_SHARED / "data" / file, delimiter=",", names=True, deletechars="", dtype=np.float64)
    return list(read.dtype.names), np.column_stack([read[name] for name in read.dtype.names])


def topgear(replicates: int) -> None:
    """Print lambdas of Box-Cox fits of TopGear's columns, and the cars flagged in MPG and Weight.

    Published lambdas of MPG and Weight: -0.11 and 0.83 by ML, 0.84 and 0.09 by RewML.
    """
    names, X = data("topgear.csv")
    cars = np.genfromtxt(_SHARED / "data/topgear_names.csv", delimiter=",", skip_header=1, dtype=str)
    columns = [j for j, name in enumerate(names) if np.nanmin(X[:, j]) > 0.0 and name != "Verdict"]

    def rows() -> Iterator[Any]:
        for name, options in ESTIMATORS.items():
            yield name, list(fit(X[:, columns], "box-cox", options).lmbda)

    table("TopGear, Box-Cox: lambda", [names[j][:8] for j in columns], rows(), 2)
    for name in ("MPG", "Weight"):
        x = X[:, names.index(name)]
        flagged = fit(x, "box-cox", ESTIMATORS["adaptive RewML"]).outliers(x)
        order = np.flatnonzero(flagged)[np.argsort(x[flagged])]
        print(f"{name}: " + "; ".join(f"{' '.join(cars[i])} ({x[i]:g})" for i in order))


def glass(replicates: int) -> None:
    """Print Fig. 11: the outlying cells of the spectra without a transform, after ML, and after adaptive RewML."""
    X = data("data_glass.csv.gz")[1]
    X = X[:, [np.median(abs(x - np.median(x))) > 0.0 for x in X.T]]
    print(f"\nGlass: {X.shape[0]} spectra, {X.shape[1]} wavelengths with a positive MAD")
    flags = {"no transform": np.abs((X - np.median(X, axis=0)) / _mad(X)) > ndtri(0.995)}
    for name in ("ML", "adaptive RewML"):
        fitted = fit(X, "yeo-johnson", ESTIMATORS[name])
        quartiles = np.percentile(fitted.lmbda, [0, 25, 50, 75, 100]).round(2)
        print(f"{name}: lambda from {quartiles[0]} over {quartiles[1:4]} (quartiles) to {quartiles[4]}")
        flags[name] = fitted.outliers(X)
    blocks = np.array_split(np.arange(X.shape[0]), 9)

    def rows() -> Iterator[Any]:
        for name, flagged in flags.items():
            yield name, [100.0 * float(flagged[block].mean()) for block in blocks]

    table("Print Fig. 11: outlying cells, %, of rows", [f"{b[0] + 1}-{b[-1] + 1}" for b in blocks], rows(), 1)


def dposs(replicates: int) -> None:
    """Print robust principal components of the stars, and percentages of stars outside the cut-offs (section 4.3)."""
    X = data("data_dposs.csv.gz")[1]
    print(f"\nDPOSS: {X.shape[0]} stars, {X.shape[1]} variables, {np.isnan(X).mean():.0%} missing")
    columns = ["share 1", "2", "3", "4", "score", "orthog.", "both", "none"]
    table("Variance of 4 components, and % of stars beyond the cut-offs", columns, _components(X), 3)


def _components(X: np.ndarray) -> Iterator[Any]:
    data = {"no transform": X}
    for name in ("ML", "adaptive RewML"):
        data[name] = fit(X, "yeo-johnson", ESTIMATORS[name]).transform(X)
    for name, values in data.items():
        found = wrapped_pca(values, 4)
        far, off = (
            found.score_distances > found.score_cutoff,
            found.orthogonal_distances > found.orthogonal_cutoff,
        )
        shares = [100.0 * float(which.mean()) for which in (far & ~off, off & ~far, far & off, ~far & ~off)]
        yield name, [*found.explained_variance_ratio.tolist(), *shares]


def _mad(X: np.ndarray) -> np.ndarray:
    return np.asarray(1.4826 * np.median(np.abs(X - np.median(X, axis=0)), axis=0))


PARTS: dict[str, Callable[[int], None]] = {
    part.__name__: part for part in (sensitivity, simulation, default, trimmed, topgear, glass, dposs)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    parser.add_argument("--replicates", type=int, default=1_000)
    args = parser.parse_args()
    for part in args.only or PARTS:
        try:
            PARTS[part](args.replicates)
        except FileNotFoundError as error:
            print(f"\n{part}: not measured, {error.filename} is not there")


if __name__ == "__main__":
    main()
