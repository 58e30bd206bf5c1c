"""The choice between families by likelihood, by normal quantiles and by Pearson's chi-square."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import powerkern as pk
from powerkern import __main__ as cli
from powerkern._results.normality import pearson_normality


def table(n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(0)
    parts = [rng.lognormal(size=n), rng.gamma(2.0, size=n), rng.weibull(0.7, size=n), rng.beta(2.0, 5.0, size=n)]
    return np.column_stack(
        [*parts, rng.normal(size=n), *(scale * rng.lognormal(sigma=0.7, size=n) for scale in (3, 9))]
    )


def pearson(z: np.ndarray) -> float:
    """Return Pearson's chi-square statistic per degree of freedom, with the classes of R's nortest."""
    k = int(np.ceil(2 * z.size ** (2 / 5)))
    edges = stats.norm.ppf(np.arange(k + 1) / k, z.mean(), z.std(ddof=1))
    counts = [np.count_nonzero((z >= a) & (z < b)) for a, b in itertools.pairwise(edges)]
    return float(stats.chisquare(counts).statistic / (k - 3))


def test_the_statistic_agrees_with_counting() -> None:
    for j, column in enumerate(table().T):
        assert pearson_normality(column, None) == pytest.approx(pearson(column), rel=1e-12), j
    normal = np.random.default_rng(1).normal(size=(300, 200))
    assert np.mean([pearson_normality(column, None) for column in normal.T]) == pytest.approx(1.0, abs=0.1)
    assert np.isnan(pearson_normality(np.array([1.0, 2.0]), None))
    assert np.isnan(pearson_normality(np.ones(9), None))


@pytest.mark.parametrize("criterion", ["likelihood", "ppcc", "pearson"])
@pytest.mark.parametrize("estimator", ["mle", "ppcc", "robust"])
def test_the_better_family_is_chosen(estimator: str, criterion: str) -> None:
    X = table()
    X[::11, 2] = np.nan
    fit = pk.fit(X, "best", estimator, criterion=criterion)
    positive = [j for j in range(X.shape[1]) if np.nanmin(X[:, j]) > 0.0]
    families = dict.fromkeys(range(X.shape[1]), "yeo-johnson")
    for j in positive:
        each = {family: pk.fit(X[:, j], family, estimator) for family in ("yeo-johnson", "box-cox")}
        kept = np.all([one.weights(X[:, j]) > 0.0 for one in each.values()], axis=0)
        if criterion == "likelihood":
            if estimator == "robust":
                continue
            values = {family: float(one.nll[0]) for family, one in each.items()}
        else:
            z = {family: one.transform(X[kept, j]) for family, one in each.items()}
            measure = pearson if criterion == "pearson" else _minus_ppcc
            values = {family: measure(column) for family, column in z.items()}
        families[j] = "box-cox" if values["box-cox"] < values["yeo-johnson"] else "yeo-johnson"
        assert fit.families[j] == families[j], (j, values)
        assert_array_equal(fit.lmbda[j], each[families[j]].lmbda[0])
    assert fit.families[4] == "yeo-johnson"


def _minus_ppcc(z: np.ndarray) -> float:
    return -float(stats.probplot(z)[1][2])


def test_criteria_differ_and_weights_repeat_rows() -> None:
    X = table()
    chosen = {criterion: pk.fit(X, "best", criterion=criterion).families for criterion in ("likelihood", "pearson")}
    assert chosen["likelihood"] != chosen["pearson"]
    weight = np.arange(200) % 3
    weighted = pk.fit(X, "best", criterion="ppcc", sample_weight=weight)
    repeated = pk.fit(np.repeat(X, weight, axis=0), "best", criterion="ppcc")
    assert weighted.families == repeated.families
    assert_allclose(weighted.lmbda, repeated.lmbda, rtol=1e-9, atol=1e-11)
    for j in range(X.shape[1]):
        repeats = pearson_normality(np.repeat(X[:, j], weight), None)
        assert pearson_normality(X[:, j], weight.astype(float)) == pytest.approx(repeats, rel=1e-12)


def test_invalid_criteria_are_refused() -> None:
    with pytest.raises(ValueError, match="criterion works only with family='best', not with family='box-cox'"):
        pk.fit([1.0, 2.0, 4.0], "box-cox", criterion="ppcc")
    with pytest.raises(ValueError, match="criterion must be"):
        pk.fit([1.0, 2.0, 4.0], "best", criterion="aic")


def test_the_command_line_uses_the_criterion(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", table())
    assert cli.main(["fit", str(tmp_path / "x.npy"), "--family", "best", "--criterion", "pearson", "--json"]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert [one["family"] for one in columns] == pk.fit(table(), "best", criterion="pearson").families
