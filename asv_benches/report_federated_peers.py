"""Federated fits compared with the published protocol, for the tables of docs/accuracy.rst.

python -m asv_benches.report_federated_peers [--write docs/benchmarks/federated.inc]
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import powerkern as pk

from . import _exp_search as peer
from .bench_federated import METHODS, REFERENCES, cases, serve
from .report import list_table, machine

N_SITES = 10
Row = tuple[str, ...]
Dataset = tuple[np.ndarray, np.ndarray]


# --- lambda -------------------------------------------------------------------------------------------


def searches() -> Iterator[Row]:
    """Yield a row with errors of lambda and numbers of rounds for each search and each set of reference columns.

    Sets that are not on this machine are left out.
    """
    for kind in REFERENCES:
        try:
            columns = [x for family, x in cases(kind) if family == "yeo-johnson"]
        except NotImplementedError:  # not on this machine
            continue
        pooled = [pk.fit(x).lmbda[0] for x in columns]
        for name, fit in {"ExpSearch, 40 steps": _exp_search, **{m: _ours(m) for m in METHODS}}.items():
            found = [fit(np.array_split(x, N_SITES)) for x in columns]
            errors = [abs(f[0] - best) / max(1.0, abs(best)) for f, best in zip(found, pooled, strict=True)]
            rounds, size = [f[1] for f in found], statistics.median(f[2] / f[1] for f in found)
            yield (
                f"{len(columns)} {kind} columns",
                name,
                f"{np.mean(np.array(errors) <= 1e-10):.0%}",
                f"{max(errors):.1g}",
                f"{statistics.median(rounds):g}, {max(rounds)}",
                f"{size:.0f}",
            )


def _exp_search(parts: list[np.ndarray]) -> tuple[float, int, float]:
    lmbda, path = peer.exp_search(parts)
    return lmbda, len(path), 8.0 * peer.N_SUMS * len(path)


def _ours(method: str) -> Callable[[list[np.ndarray]], tuple[float, int, float]]:
    def fit(parts: list[np.ndarray]) -> tuple[float, int, float]:
        server = serve([part.reshape(-1, 1) for part in parts], **METHODS[method])
        return float(server.fit.lmbda[0]), server.round, server.bytes_received / len(parts)

    return fit


# --- variances ----------------------------------------------------------------------------------------


def variances() -> Iterator[Row]:
    """Yield relative errors of the variance of values at 100 sites, for two formulas that merge the sites' sums."""
    rng = np.random.default_rng(0)
    columns = {
        "normal, mean 0, sd 1": rng.normal(size=100_000),
        "normal, mean 1e4, sd 1": rng.normal(1e4, size=100_000),
        "normal, mean 1e4, sd 1e-3": rng.normal(1e4, 1e-3, size=100_000),
        "years": rng.integers(1900, 2026, size=100_000).astype(float),
        "time in seconds since 1970, of a day": 1.7e9 + rng.uniform(0, 86_400, size=100_000),
        "lognormal, sigma 3": rng.lognormal(sigma=3, size=100_000),
        "sorted by site: normal, mean 1e4, sd 1": np.sort(rng.normal(1e4, size=100_000)),
    }
    for name, x in columns.items():
        parts, exact = np.array_split(x, 100), _exact_variance(x)
        yield (
            name,
            *(
                f"{abs(float(Fraction(way(parts)) / exact - 1)):.1g}"
                for way in (peer.one_pass_variance, peer.pairwise_variance)
            ),
        )


def _exact_variance(x: np.ndarray) -> Fraction:
    """Return the variance in rational arithmetic."""
    scaled = [int(v) for v in np.ldexp(x, 60).tolist()] if abs(x).min() > 1e-2 else [Fraction(v) for v in x.tolist()]
    unit = Fraction(1, 1 << 60) if isinstance(scaled[0], int) else Fraction(1)
    n, total, squares = len(scaled), sum(scaled), sum(v * v for v in scaled)
    return (Fraction(squares) - Fraction(total * total, n)) / n * unit * unit


# --- the effect on a model -------------------------------------------------------------------------


def adult_like(rng: np.random.Generator) -> Dataset:
    """Return columns like those of Adult: age, years of education, hours per week, mostly zero gains and losses."""
    n = 20_000
    latent = rng.normal(size=(n, 5))
    skewed = [17 + 40 * np.exp(0.4 * latent[:, 0] - 0.5), np.round(10 + 2.5 * latent[:, 1])]
    skewed += [40 + 12 * latent[:, 2]]
    skewed += [
        np.where(rng.random(n) < share, np.exp(7 + 1.5 * latent[:, k]), 0.0) for k, share in ((3, 0.08), (4, 0.05))
    ]
    return np.stack(skewed, axis=1), _label(rng, latent @ [0.8, 0.9, 0.5, 0.3, 0.2] - 1.2)


def bank_like(rng: np.random.Generator) -> Dataset:
    """Return columns like those of Bank: balance of both signs, duration, contacts, days since the last contact."""
    n = 20_000
    latent = rng.normal(size=(n, 4))
    skewed = [np.sinh(1.5 * latent[:, 0] + 1) * 400, np.exp(5.2 + 0.9 * latent[:, 1])]
    skewed += [
        1 + np.floor(np.exp(0.8 * latent[:, 2])),
        np.where(rng.random(n) < 0.8, -1.0, np.exp(5 + 0.5 * latent[:, 3])),
    ]
    return np.stack(skewed, axis=1), _label(rng, latent @ [0.4, 1.5, -0.4, 0.1] - 2.0)


def credit_like(rng: np.random.Generator) -> Dataset:
    """Return columns like those of Credit: bills and payments over six orders of magnitude, a limit, and an age."""
    n = 20_000
    common = rng.normal(size=(n, 1))
    latent = 0.7 * common + 0.7 * rng.normal(size=(n, 8))
    skewed = [np.exp(9 + 2 * latent[:, k]) * np.where(rng.random(n) < 0.05, -0.1, 1.0) for k in range(3)]
    skewed += [np.where(rng.random(n) < 0.2, 0.0, np.exp(7 + 2 * latent[:, k])) for k in range(3, 6)]
    skewed += [np.exp(11.5 + 0.8 * latent[:, 6]), 21 + np.exp(2.5 + 0.6 * latent[:, 7])]
    return np.stack(skewed, axis=1), _label(rng, latent @ [0.3, 0.2, 0.2, -0.7, -0.5, -0.4, -0.6, 0.0] - 1.3)


def _label(rng: np.random.Generator, score: np.ndarray) -> np.ndarray:
    return (rng.random(score.size) < 1 / (1 + np.exp(-score))).astype(int)


def models() -> Iterator[Row]:
    """Yield for each data set the areas under the ROC curve of logistic regressions after four kinds of transforms.

    Sites hold equal numbers of rows, divided in the order of the first column. Columns are standardised only, or
    transformed by each site's own fit, by the federated fit, or by the pooled fit.
    """
    rng = np.random.default_rng(0)
    datasets = {
        "breast cancer (scikit-learn)": load_breast_cancer(return_X_y=True),
        "look-alike of Adult": adult_like(rng),
        "look-alike of Bank": bank_like(rng),
        "look-alike of Credit": credit_like(rng),
    }
    for name, (X, y) in datasets.items():
        site = np.argsort(np.argsort(X[:, 0])) * N_SITES // len(X)
        train = rng.random(len(X)) < 0.7
        yield (
            name,
            *(f"{_area(transform(X, site, train), y, train):.4f}" for transform in (_plain, _own, _federated, _pooled)),
        )


def _plain(X: np.ndarray, site: np.ndarray, train: np.ndarray) -> np.ndarray:
    return StandardScaler().fit(X[train]).transform(X)


def _own(X: np.ndarray, site: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Transform the rows of each site by a fit of the site's rows in the mask `train`."""
    out = np.empty_like(X)
    for k in range(N_SITES):
        out[site == k] = pk.fit(X[(site == k) & train]).transform(X[site == k])
    return out


def _federated(X: np.ndarray, site: np.ndarray, train: np.ndarray) -> np.ndarray:
    return serve([X[(site == k) & train] for k in range(N_SITES)]).fit.transform(X)


def _pooled(X: np.ndarray, site: np.ndarray, train: np.ndarray) -> np.ndarray:
    return pk.fit(X[train]).transform(X)


def _area(Z: np.ndarray, y: np.ndarray, train: np.ndarray) -> float:
    model = LogisticRegression(max_iter=1000).fit(Z[train], y[train])
    return float(roc_auc_score(y[~train], model.decision_function(Z[~train])))


# --- tables -------------------------------------------------------------------------------------------


def tables() -> Iterator[str]:
    """Yield all tables, as reStructuredText."""
    headings: Row = (
        "columns",
        "method",
        "right to 1e-10",
        "worst error",
        "rounds: median, most",
        "bytes a round and site",
    )
    yield list_table(
        f"Lambda of {N_SITES} sites against the pooled fit, one column; on {machine()}",
        headings,
        searches(),
    )
    headings = ("values of 100 sites", "sums of values and squares", "merged in pairs")
    yield list_table("Relative error of the variance of 100,000 values", headings, variances())
    headings = ("data", "standardised", "each site's own fit", "federated", "pooled")
    yield list_table("Area under the ROC curve of a logistic regression, Yeo-Johnson", headings, models())


def main() -> None:
    """Print the tables and write them."""
    parser = argparse.ArgumentParser(prog="python -m asv_benches.report_federated_peers", description=__doc__)
    parser.add_argument("--write", type=Path, help="write the tables as reStructuredText to this file")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        text = "\n".join(tables())
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
