"""A short fuzz run; its oracle against closed forms and SciPy; and its checks on wrong results."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.stats

from tests.support.fits import fit_from_rows, kernel_rows

pytest.importorskip("flint", reason="the oracle of the fuzz is python-flint's ball arithmetic")

import powerkern as pk
from fuzz import checks, columns, oracle, partitions, run
from fuzz.others import CHECKS

pytestmark = pytest.mark.slow

SEED, OTHER_SEED, COLUMNS, LONGEST = 101, 104, 160, 300


@pytest.mark.parametrize("seed", [SEED, OTHER_SEED])
def test_a_short_run_finds_nothing(seed):
    totals = run.fuzz(seed, COLUMNS, longest=LONGEST)
    assert totals.n_columns >= COLUMNS
    assert totals.findings == []


@pytest.mark.parametrize(
    "what, n_columns", [("chunks", 60), ("robust", 60), ("stats", 120), ("groups", 60), ("origin", 60)]
)
def test_short_runs_of_what_is_built_on_fits(what, n_columns):
    assert run.fuzz(SEED, n_columns, longest=100, what=what).findings == []


def test_some_batches_have_weights_over_many_decades():
    seen = [b.weight[b.weight > 0.0] for b in run.batches(OTHER_SEED, COLUMNS, LONGEST) if b.weight is not None]
    assert max(weight.max() / weight.min() for weight in seen) > 1e20


def test_a_seed_reproduces_its_columns():
    one, again = columns.batch(5, 7), columns.batch(5, 7)
    assert one.values.tobytes() == again.values.tobytes()
    assert one.values.tobytes() != columns.batch(5, 8).values.tobytes()


def test_every_kind_of_column_is_drawn():
    made = [columns.batch(2, i) for i in range(100)]
    assert {kind for batch in made for kind in batch.kinds} == set(columns.KINDS)
    assert {batch.family for batch in made} == {"box-cox", "yeo-johnson"}
    assert all((batch.values[~np.isnan(batch.values)] > 0.0).all() for batch in made if batch.family == "box-cox")


@pytest.mark.parametrize(
    "family, llf", [("box-cox", scipy.stats.boxcox_llf), ("yeo-johnson", scipy.stats.yeojohnson_llf)]
)
@pytest.mark.parametrize("lmbda", [-1.5, 0.0, 1e-3, 1.0, 2.0, 3.7])
def test_oracle_agrees_with_scipy(family, llf, lmbda):
    rng = np.random.default_rng(0)
    x = rng.lognormal(size=50) if family == "box-cox" else rng.normal(size=50)
    assert oracle.Likelihood(x, None, family).nll(lmbda) == pytest.approx(-llf(lmbda, x), rel=1e-12)


@pytest.mark.parametrize("x, family, optimum", [([3.0, 7.0], "box-cox", 0.0), ([-1.0, -2.0], "yeo-johnson", 2.0)])
def test_oracle_knows_the_optimum_of_two_values(x, family, optimum):
    likelihood = oracle.Likelihood(np.array(x), None, family)
    assert likelihood.optimum(5.0) == pytest.approx(optimum, abs=1e-12)
    assert likelihood.is_minimum(optimum, 1e-12)
    assert not likelihood.is_minimum(optimum + 1e-9, 1e-10)


def test_oracle_counts_weights_as_repetitions():
    x, weight = np.array([1.0, 2.0, 5.0, 9.0]), np.array([1.0, 3.0, 0.0, 2.0])
    weighted = oracle.Likelihood(x, weight, "box-cox")
    repeated = oracle.Likelihood(np.repeat(x, weight.astype(int)), None, "box-cox")
    assert weighted.nll(0.3) == repeated.nll(0.3)
    assert weighted.total == 6.0


# --- checks fail where something is wrong ---------------------------------------------------------------


@pytest.fixture
def fitted():
    x = np.random.default_rng(3).lognormal(size=40)
    fit = pk.fit(x, "box-cox")
    low, high = (float(end[0]) for end in fit.confint())
    return checks.Fitted(fit[:1], oracle.Likelihood(x, None, "box-cox"), low, high)


def _moved(fitted, field, by):
    from powerkern.kernels import results as fields

    rows = kernel_rows(fitted.fit).copy()
    rows[0, getattr(fields, field)] += by
    return fitted._replace(fit=fit_from_rows(rows, fitted.fit.family))


@pytest.mark.parametrize(
    "field, by, kind, check",
    [
        ("LMBDA", 1e-8, "lambda", "_check_lambda"),
        ("NLL", 1e-7, "nll", "_check_nll"),
        ("N_OBS", 1e-6, "weight", "_check_weight"),
        ("INTERCEPT", 1e-7, "standardized", "_check_output"),
        ("SLOPE", np.nan, "not-finite", "_check_output"),
        ("SLOPE", -1e3, "monotone", "_check_output"),
        ("STATUS", float(pk.Status.CONSTANT), "status", "_check_status"),
        ("STATUS", float(pk.Status.UNREPRESENTABLE), "status", "_check_status"),
        ("STATUS", float(pk.Status.NOT_CERTIFIED), "status", "_check_status"),
    ],
)
def test_wrong_results_are_found(fitted, field, by, kind, check):
    check = getattr(checks, check)
    assert list(check(fitted)) == []
    assert kind in [found for found, _ in check(_moved(fitted, field, by))]


def test_inverses_that_do_not_return_the_values_are_found(fitted, monkeypatch):
    inverse = pk.PowerFit.inverse_transform
    monkeypatch.setattr(pk.PowerFit, "inverse_transform", lambda *a, **k: inverse(*a, **k) * (1.0 + 1e-9))
    assert "round-trip" in [found for found, _ in checks._check_output(fitted)]


@pytest.mark.parametrize(
    "what, owner, change, kind",
    [
        ("groups", pk.GroupedFit, lambda z: z * (1.0 + 1e-15), "groups"),
        ("origin", pk.PowerFit, lambda z: np.where(z == np.nanmax(z), np.inf, z), "not-finite"),
        ("origin", pk.PowerFit, np.negative, "monotone"),
    ],
)
def test_wrong_images_are_found(monkeypatch, what, owner, change, kind):
    batch = columns.Batch("1:2", "box-cox", np.random.default_rng(3).lognormal(size=(40, 2)), None, ["lognormal"] * 2)
    assert list(CHECKS[what](batch)) == []
    transform = owner.transform
    monkeypatch.setattr(owner, "transform", lambda *a, **k: change(transform(*a, **k)))
    assert kind in [finding.kind for finding in CHECKS[what](batch)]


@pytest.mark.parametrize(
    "ends, kind",
    [
        ({"low": np.nan}, "interval-nan"),
        ({"low": 0.9}, "interval-excludes"),
        ({"high": 0.3}, "interval-end"),
        ({"high": np.inf}, "interval-infinite"),
    ],
)
def test_wrong_intervals_are_found(fitted, ends, kind):
    assert list(checks._check_interval(fitted)) == []
    assert kind in [found for found, _ in checks._check_interval(fitted._replace(**ends))]


# --- random partitions ----------------------------------------------------------------------------------


def test_a_short_run_of_partitions_finds_nothing():
    seen, findings = partitions.fuzz(SEED, 60, longest=100)
    assert findings == []
    assert seen["certified"] > 20


@pytest.mark.parametrize("seed, index", [(11, 14), (12, 22)])
def test_sums_without_digits_are_not_taken_for_constants_beyond_float64(seed, index):
    seen = Counter()
    assert list(partitions.check(partitions.batch(seed, index), index, seen)) == []
    assert seen["UNRESOLVED"] > 0


def test_partitions_are_of_all_kinds():
    made = [partitions.batch(3, i) for i in range(60)]
    weights = [b.weight for b in made if b.weight is not None]
    assert max(w.max() for w in weights) > 1e16
    assert any((w == 0.0).any() for w in weights)
    assert max(np.isnan(b.values).mean(axis=0).max() for b in made) > 0.95
    lengths = [[len(c[0]) for c in partitions.chunks_of(b, i)] for i, b in enumerate(made)]
    assert any(len(one) == 1 for one in lengths)
    assert any(len(one) > 1 and set(one) == {1} for one in lengths)


@pytest.mark.parametrize("error, kind", [(1e-8, "lambda"), (0.0, None)])
def test_a_wrong_lambda_from_chunks_is_found(monkeypatch, error, kind):
    from powerkern.kernels.results import LMBDA

    fit_chunks = partitions.fit_chunks

    def slightly_wrong(*args, **options):
        fit = fit_chunks(*args, **options)
        kernel_rows(fit)[:, LMBDA] += error
        return fit

    monkeypatch.setattr(partitions, "fit_chunks", slightly_wrong)
    values = np.random.default_rng(0).lognormal(size=(50, 1))
    made = columns.Batch("0:0", "box-cox", values, None, ["lognormal"])
    found = list(partitions.check(made, 0, Counter()))
    assert [one.kind for one in found] == ([] if kind is None else [kind])
