"""Kernels of regressions, compared with least squares: products of residuals, missing values, and single responses."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern._status import Route, Status
from powerkern.kernels.likelihood.logs import summarize_values
from powerkern.kernels.regression import fit, likelihood, search
from powerkern.kernels.regression.response import prepare
from powerkern.kernels.results import BAD_RANK, CURVATURE, FIELDS, LMBDA, N_EVAL, N_RESULTS, NLL, SCALE, STATUS
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON

NO_WEIGHTS = np.empty(0)


def design(X, root=NO_WEIGHTS, sample=0, constant=1.0):
    """Return the kernels' design matrix for the rows of `X` and for a sample of them, as orthonormal bases.

    Parameters
    ----------
    X : (n, k) ndarray
        The covariates.
    root : (n,) ndarray
        Square roots of the weights; empty if there are none.
    sample : int
        Number of sampled rows, which are evenly spaced.
    constant : float
        1 if the columns of `X` span the constant, else 0.
    """
    rows = X if root.size == 0 else root[:, None] * X
    basis = np.ascontiguousarray(np.linalg.qr(rows)[0].T)
    some = np.empty((len(basis), 0)), np.empty(0)
    if sample:
        at = np.arange(sample) * (len(X) // sample)
        some = np.ascontiguousarray(np.linalg.qr(rows[at])[0].T), root[at] if root.size else root
    return likelihood.Design(basis, root, *some, constant)


def regress(y, X, family=BOX_COX, lmbda=np.nan, root=NO_WEIGHTS, sample=0, constant=1.0):
    """Fit one response `y`; return its row of results, and the two ends of the scan followed by coefficients.

    The coefficients refer to the orthonormal basis of `design`, whose docstring describes the other arguments. `lmbda`
    is NaN to estimate lambda.
    """
    one = design(X, root, sample, constant)
    out, extra = np.empty((1, N_RESULTS)), np.empty((1, 2 + X.shape[1]))
    work = likelihood.new_regression_work(one)
    fit.regress_columns(y[None].copy(), one, family, np.array([lmbda]), work, out, extra)
    return out[0], extra[0]


def profile(y, X, lmbdas, family=BOX_COX, root=NO_WEIGHTS):
    one, out = design(X, root), np.empty((1, len(lmbdas)))
    work = likelihood.new_regression_work(one)
    fit.profile_columns(y[None].copy(), one, family, np.array([lmbdas], dtype=np.float64), work, out)
    return out[0]


def covariates(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([np.ones(n), rng.normal(size=(n, 2))]), rng


@pytest.mark.parametrize("family, name", [(BOX_COX, "box-cox"), (YEO_JOHNSON, "yeo-johnson")])
@pytest.mark.parametrize("n", [6, 31])
def test_optimum_agrees_with_mpmath(family, name, n):
    X, rng = covariates(n, n)
    y = rng.lognormal(size=n) if family == BOX_COX else rng.normal(size=n) ** 3
    row, extra = regress(y, X, family)
    assert row[STATUS] == Status.SCANNED
    exact = oracles.regression_lambda(name, y, X, row[LMBDA], digits=40)
    g, _, d2 = oracles.regression_likelihood(name, exact, y, X, digits=40)
    assert abs(row[LMBDA] - exact) < 1e-12
    assert row[NLL] == pytest.approx(float(g), rel=1e-12)
    assert row[CURVATURE] == pytest.approx(float(d2), rel=1e-7)
    assert extra[0] < row[LMBDA] < extra[1]


@pytest.mark.parametrize("lmbda", [-400.0, -3.0, 0.0, 1e-9, 1.0, 2.0, 500.0])
@pytest.mark.parametrize("kind", ["positive", "negative", "both"])
def test_likelihood_at_any_lambda(kind, lmbda):
    X, rng = covariates(20)
    y = {"positive": rng.lognormal(size=20), "negative": -rng.lognormal(size=20), "both": rng.normal(size=20)}[kind]
    family, name = (BOX_COX, "box-cox") if kind == "positive" else (YEO_JOHNSON, "yeo-johnson")
    g = oracles.regression_likelihood(name, lmbda, y, X, digits=400)[0]
    assert profile(y, X, [lmbda], family)[0] == pytest.approx(float(g), rel=1e-11, abs=1e-12)


def test_a_close_fit_is_formed_from_residuals():
    X, rng = covariates(20)
    y = 10.0 + X @ [0.0, 1.0, 0.5] + 1e-7 * rng.normal(size=20)
    row, _ = regress(y, X, lmbda=1.0)
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert row[NLL] == pytest.approx(0.5 * np.log(rest @ rest / 20), rel=1e-8)


def test_missing_responses_are_fitted_as_if_dropped():
    X, rng = covariates(40)
    y = rng.lognormal(size=40)
    kept = rng.random(40) > 0.3
    one, _ = regress(np.where(kept, y, np.nan), X)
    other, _ = regress(y[kept], X[kept])
    assert one[LMBDA] == pytest.approx(other[LMBDA], abs=1e-13)
    assert one[NLL] == pytest.approx(other[NLL], rel=1e-12)


def test_rows_that_missing_values_take_from_a_covariate():
    X, rng = covariates(40)
    X[:, 2] = np.arange(40) < 2
    y = np.where(np.arange(40) < 2, np.nan, rng.lognormal(size=40))
    assert regress(y, X)[0][STATUS] == BAD_RANK


def test_a_sample_leads_to_the_same_optimum():
    X, rng = covariates(800)
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=800))
    y[::9] = np.nan
    root = np.sqrt(rng.uniform(0.5, 2.0, size=800))
    one, other = regress(y, X, root=root, sample=100)[0], regress(y, X, root=root)[0]
    assert one[LMBDA] == pytest.approx(other[LMBDA], abs=1e-12)
    assert one[STATUS] == other[STATUS] == Status.SCANNED


def test_the_likelihood_drops_by_the_requested_amount_at_the_ends():
    X, rng = covariates(25)
    y = rng.lognormal(size=25)
    row, _ = regress(y, X)
    one, ends = design(X), np.empty((1, 2))
    work = likelihood.new_regression_work(one)
    fit.interval_columns(y[None].copy(), one, BOX_COX, np.array([[row[LMBDA], 0.1]]), work, ends)
    np.testing.assert_allclose(profile(y, X, ends[0]) - row[NLL], 0.1, rtol=1e-9)
    assert ends[0, 0] < row[LMBDA] < ends[0, 1]


def test_weights_repeat_rows_in_every_block():
    n = likelihood.BLOCK + 30
    X, rng = covariates(n)
    y, weight = np.exp(0.3 * X[:, 1] + rng.normal(size=n)), rng.integers(1, 3, n)
    weighted = profile(y, X, [0.4], root=np.sqrt(weight))
    np.testing.assert_allclose(weighted, profile(np.repeat(y, weight), np.repeat(X, weight, axis=0), [0.4]), rtol=1e-12)


@pytest.mark.parametrize("power", [0.6, 1.9])
def test_the_search_does_not_depend_on_the_unit_of_the_logs(power):
    """Compare the optimum and the ends of the scan for y^c with those for y, divided by c."""
    X, rng = covariates(20)
    y = np.exp(0.3 * X[:, 1] + 0.7 * rng.normal(size=20))
    (one, ends), (other, other_ends) = regress(y, X), regress(y**power, X)
    np.testing.assert_allclose(power * other[LMBDA], one[LMBDA], rtol=1e-10)
    np.testing.assert_allclose(power * other_ends[:2], ends[:2], rtol=1e-10)
    assert one[N_EVAL] == other[N_EVAL]


@pytest.mark.parametrize(
    "slopes, expected",
    [
        ([-1.0, 1.0], True),
        ([1.0, -1.0], False),
        ([-1.0, -1.0], False),
        ([-1.0, 0.0, 1.0], True),  # the fit at the second point is exact
        ([-1.0, 0.0, -1.0], False),
        ([-1.0, 0.0, 0.0], False),
        ([-1.0, 0.0], False),  # no point follows
        ([0.0, 1.0], False),
        ([-1.0, 1.0, -1.0], True),
    ],
)
def test_a_sign_change_of_the_slope_encloses_a_minimum(slopes, expected):
    grid = np.zeros((3, len(slopes)))
    grid[search._D1] = slopes
    assert search._encloses(grid, 0, len(slopes) - 1) == expected


def test_intervals_and_profiles_of_columns_of_every_sign():
    """Check that the likelihood drops at the ends of each column's interval by the drop given for this column."""
    X, rng = covariates(25)
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=25))
    columns = np.array([y, -y, rng.normal(size=25) + X[:, 2]])
    best = np.array([regress(each, X, YEO_JOHNSON)[0] for each in columns])
    one, ends, drops = design(X), np.empty((3, 2)), np.array([0.1, 0.02, 0.5])
    work = likelihood.new_regression_work(one)
    fit.interval_columns(columns.copy(), one, YEO_JOHNSON, np.column_stack([best[:, LMBDA], drops]), work, ends)
    assert ((ends[:, 0] < best[:, LMBDA]) & (best[:, LMBDA] < ends[:, 1])).all()
    for each, own, drop, row in zip(columns, ends, drops, best, strict=True):
        np.testing.assert_allclose(profile(each, X, own, YEO_JOHNSON) - row[NLL], drop, rtol=1e-8)
    np.testing.assert_allclose(best[1, [LMBDA, NLL]], [2.0 - best[0, LMBDA], best[0, NLL]], rtol=1e-10)
    together = np.empty((3, 2))
    fit.profile_columns(columns.copy(), one, YEO_JOHNSON, ends, work, together)
    np.testing.assert_allclose(together, (best[:, NLL] + drops)[:, np.newaxis] * np.ones(2), rtol=1e-8)


# --- results, statuses and parts --------------------------------------------------------------------------


def transform(y, family, lmbda):
    return stats.boxcox(y, lmbda) if family == BOX_COX else stats.yeojohnson(y, lmbda)


def likelihood_by_numpy(y, X, w, family, lmbda):
    """Return 1/2 ln(RSS/W) - (lambda - 1) mean(J), and the residuals times the square roots of the weights `w`.

    RSS is the weighted residual sum of squares, W the total weight, and J the log-Jacobian term of each row.
    """
    root = np.sqrt(w)
    psi = root * transform(y, family, lmbda)
    rest = psi - root[:, None] * X @ np.linalg.lstsq(root[:, None] * X, psi, rcond=None)[0]
    J = np.log(y) if family == BOX_COX else np.sign(y) * np.log1p(abs(y))
    return 0.5 * np.log(rest @ rest / w.sum()) - (lmbda - 1.0) * np.average(J, weights=w), rest


RESPONSES = {
    "Box-Cox": (BOX_COX, lambda z: np.exp(z)),
    "large": (BOX_COX, lambda z: 1e3 * np.exp(0.4 * z)),
    "positive": (YEO_JOHNSON, lambda z: np.exp(z)),
    "negative": (YEO_JOHNSON, lambda z: -np.exp(z)),
    "both signs": (YEO_JOHNSON, lambda z: z - 0.3),
}


def response(name, n=26, seed=4):
    X, rng = covariates(n, seed)
    family, make = RESPONSES[name]
    return make(0.5 * X[:, 1] + rng.normal(size=n)), X, family, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("kind", ["all", "weights", "missing", "weights and missing"])
@pytest.mark.parametrize(
    "k, lmbda",
    [(1, np.nan), (2, np.nan), (3, -0.6), (2, 1.7), (2, 120.0), (2, -120.0), (-1, np.nan), (-2, 1.7), (-2, -0.6)],
)
def test_results_describe_the_regression_of_the_transformed_response(lmbda, k, kind, name):
    """Compare results with NumPy's least squares.

    The covariates are the first k, or for k < 0 the last |k|, which do not include the constant.
    """
    y, X, family, w = response(name)
    if abs(lmbda) > 100.0:
        y = y / 1e3 if name == "large" else 0.8 * y if name in ("positive", "negative") else y
        if kind != "all":
            return
    constant, X = float(k > 0), X[:, :k] if k > 0 else X[:, k:]
    w = w if "weights" in kind else np.ones(y.size)
    seen = np.ones(y.size, dtype=bool)
    if "missing" in kind:
        seen[[3, 4, 11, 20, 25]] = False
    root = np.sqrt(w) if "weights" in kind else NO_WEIGHTS
    row, extra = regress(np.where(seen, y, np.nan), X, family, lmbda, root, constant=constant)
    result = dict(zip(FIELDS, row, strict=True))
    y_seen, w_seen, at = y[seen], w[seen], result["lmbda"]
    g, rest = likelihood_by_numpy(y_seen, X[seen], w_seen, family, at)
    assert result["nll"] == pytest.approx(g, rel=1e-11, abs=1e-11)
    assert result["n_obs"] == result["n_kept"] == pytest.approx(w_seen.sum(), rel=1e-14)
    assert (result["x_min"], result["x_max"]) == (y_seen.min(), y_seen.max())
    assert result["route"] == Route.TWO_PASS
    if np.isnan(lmbda):
        near = [likelihood_by_numpy(y_seen, X[seen], w_seen, family, at + h)[0] for h in (-0.02, 0.02)]
        assert abs(near[1] - near[0]) / 0.04 < 1e-3 * result["curvature"]
        assert result["curvature"] == pytest.approx((near[0] - 2.0 * g + near[1]) / 4e-4, rel=1e-3)
        assert result["status"] == Status.SCANNED
        assert 18 <= result["n_eval"] <= 24
        # the scan extends to 4/(standard deviation of the logs) about the lambda for which all powers are logs
        logs = np.log(y_seen) if family == BOX_COX else np.sign(y_seen) * np.log1p(abs(y_seen))
        center = {"both signs": 1.0, "negative": 2.0}.get(name, 0.0)
        mean = 0.0 if name == "both signs" else np.average(logs, weights=w_seen)
        reach = 4.0 / np.sqrt(np.average((logs - mean) ** 2, weights=w_seen))
        np.testing.assert_allclose(extra[:2], (center - reach, center + reach), rtol=1e-9, atol=1e-9)
    else:
        assert (at, result["status"], result["n_eval"]) == (lmbda, Status.FIXED, 1)
        assert np.isnan(extra[:2]).all()
    scale = np.sqrt(rest @ rest / w_seen.sum())
    assert result["scale"] * np.exp(result["log_factor"]) == pytest.approx(scale, rel=1e-9)
    # standardised responses, minus the fitted values, are the residuals in units of the scale
    ref = result["ref"]
    size = y_seen / ref if family == BOX_COX else (1.0 + abs(y_seen)) / (1.0 + abs(ref))
    psi = -stats.boxcox(size, 2.0 - at) if name == "negative" else stats.boxcox(size, at)
    if name == "both signs":
        assert ref == 0.0
        psi = transform(y_seen, family, at)
    shown = result["slope"] * psi + result["intercept"]
    fitted = extra[2:] @ design(X, root).basis[:, seen]
    np.testing.assert_allclose(np.sqrt(w_seen) * shown - fitted, rest / scale, atol=1e-8)


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("lmbda", [-0.7, 0.0, 1.0, 2.0, 2.6])
@pytest.mark.parametrize("block", [7, 13, 100])
def test_derivatives_of_the_sum_of_squares(block, lmbda, name, monkeypatch):
    """Compare d1, d2 and d3 with derivatives of a polynomial through seven points.

    They are the derivatives of S = RSS e^(-2 mu J) in mu, divided by 2 S.
    """
    monkeypatch.setattr(likelihood, "BLOCK", block)
    y, X, family, w = response(name)
    seen = np.arange(26) % 6 != 2
    one = design(X, np.sqrt(w))
    work = likelihood.new_regression_work(one)
    x = np.where(seen, y, np.nan)
    with np.errstate(all="ignore"):
        column, good = prepare(x, summarize_values(x, None), family, one, work)
        mu = fit._exponent(column, lmbda)
        found = likelihood.evaluate(column.rows, mu, work)
    assert good
    sign = -1.0 if name == "negative" else 1.0

    def g(h):
        return likelihood_by_numpy(y[seen], X[seen], w[seen], family, lmbda + sign * h / column.rows.sigma)[0]

    step = 0.02
    log_s = 2.0 * np.array([g(k * step) for k in range(-3, 4)])
    fitted = np.polynomial.Polynomial.fit(step * np.arange(-3, 4), np.exp(log_s - log_s[3]), 6).convert().coef
    expected = 0.5 * fitted[1], fitted[2], 3.0 * fitted[3]
    np.testing.assert_allclose((found.d1, found.d2, found.d3), expected, rtol=2e-5, atol=2e-5)
    assert found.curvature == pytest.approx(fitted[2] - 0.5 * fitted[1] ** 2, rel=1e-5, abs=1e-5)
    assert 0.0 < found.unexplained <= 1.0 + 1e-12


@pytest.mark.parametrize("kind", ["plain", "weights and missing"])
def test_close_fits_with_weights_and_missing_values(kind):
    """Less than 1e-4 of the sum of squares is unexplained, so products are formed from residuals."""
    X, rng = covariates(30)
    y = np.exp(3.0 + X @ [0.0, 0.3, 0.2] + 1e-4 * rng.normal(size=30))
    w, seen = np.ones(30), np.ones(30, dtype=bool)
    if kind != "plain":
        w, seen[::7] = rng.integers(1, 4, 30).astype(float), False
    root = NO_WEIGHTS if kind == "plain" else np.sqrt(w)
    row, extra = regress(np.where(seen, y, np.nan), X, BOX_COX, root=root)
    exact = oracles.regression_lambda("box-cox", y[seen], X[seen], row[LMBDA], w[seen], digits=30)
    g, _, d2 = oracles.regression_likelihood("box-cox", exact, y[seen], X[seen], w[seen], digits=30)
    assert row[LMBDA] == pytest.approx(float(exact), abs=1e-9)
    assert row[NLL] == pytest.approx(float(g), rel=1e-9)
    assert row[CURVATURE] == pytest.approx(float(d2), rel=1e-6)
    _, rest = likelihood_by_numpy(y[seen], X[seen], w[seen], BOX_COX, row[LMBDA])
    fitted = extra[2:] @ design(X, root).basis[:, seen]
    shown = fitted + rest / np.sqrt(rest @ rest / w[seen].sum())
    psi = np.sqrt(w[seen]) * stats.boxcox(y[seen], row[LMBDA])
    slope, intercept = np.polyfit(psi / np.sqrt(w[seen]), shown / np.sqrt(w[seen]), 1)
    np.testing.assert_allclose(shown, slope * psi + intercept * np.sqrt(w[seen]), atol=1e-6)


def test_the_lowest_of_two_minima_is_found():
    y, rng = np.linspace(1.0, 9.0, 40), np.random.default_rng(0)
    X = np.column_stack([np.ones(40), y**2 + 0.02 * rng.normal(size=40), 1.0 / y + 0.001 * rng.normal(size=40)])
    for x in (y, 10.0 / y):
        sign = 1.0 if x is y else -1.0
        row, extra = regress(x, X)
        lmbdas = np.linspace(-4.0, 4.0, 161)
        values = [likelihood_by_numpy(x, X, np.ones(40), BOX_COX, lmbda)[0] for lmbda in lmbdas]
        assert row[STATUS] == Status.MULTIMODAL
        assert abs(row[LMBDA] - lmbdas[np.argmin(values)]) < 0.05
        assert row[NLL] <= min(values)
        assert row[NLL] == pytest.approx(likelihood_by_numpy(x, X, np.ones(40), BOX_COX, row[LMBDA])[0], abs=1e-10)
        assert extra[0] < min(sign * 2.0, -sign) < max(sign * 2.0, -sign) < extra[1]
        rest = likelihood_by_numpy(x, X, np.ones(40), BOX_COX, row[LMBDA])[1]
        assert row[SCALE] == pytest.approx(np.sqrt(rest @ rest / 40), rel=1e-7)


@pytest.mark.parametrize("lmbda", [0.0, 0.37, -1.0])
def test_exact_fits(lmbda):
    x = np.arange(1.0, 13.0)
    y = np.exp(0.1 * x) if lmbda == 0.0 else x ** (1.0 / lmbda)
    X = np.column_stack([np.ones(12), x])
    row, _ = regress(y, X)
    assert row[STATUS] == Status.EXACT
    assert row[LMBDA] == pytest.approx(lmbda, abs=1e-10)
    assert 0.0 < row[SCALE] < 1e-10
    given, _ = regress(y, X, lmbda=lmbda)
    assert (given[LMBDA], given[STATUS]) == (lmbda, Status.EXACT)


def test_a_saturated_design_is_exact_at_every_lambda():
    row, extra = regress(np.repeat([1.0, 2.0, 5.0], 4), np.repeat(np.eye(3), 4, axis=0))
    assert (row[LMBDA], row[STATUS]) == (1.0, Status.EXACT)
    assert extra[0] < 1.0 < extra[1]


@pytest.mark.parametrize("power", [1.0, -1.0])
def test_a_monotone_likelihood_ends_at_the_end_of_the_scan(power):
    """A covariate fits the outlier exactly, so the outlier affects only the Jacobian."""
    y, X = np.array([1.0, 1.1, 1.25, 1.3, 1.02, 1e6]) ** power, np.column_stack([np.ones(6), np.eye(6)[:, 5]])
    row, extra = regress(y, X)
    assert row[STATUS] == Status.AT_END
    assert extra[0] <= row[LMBDA] <= extra[1]
    nll = [likelihood_by_numpy(y, X, np.ones(6), BOX_COX, lmbda)[0] for lmbda in np.linspace(0.0, row[LMBDA], 9)]
    assert (np.diff(nll) < 0.0).all()
    assert row[NLL] == pytest.approx(nll[-1], abs=1e-4)  # NumPy's residuals lose digits


@pytest.mark.parametrize("n", [1, 2, 3])
def test_as_many_coefficients_as_values_leave_no_residuals(n):
    X, rng = covariates(12)
    y = np.full(12, np.nan)
    y[:n] = rng.lognormal(size=n)
    status = regress(y, X)[0][STATUS]
    assert status == (Status.CONSTANT if n == 1 else BAD_RANK)
    y[3], y[5] = 2.0, 1.5
    assert (regress(y, X)[0][STATUS] == BAD_RANK) == (n == 1)


@pytest.mark.parametrize(
    "slopes, expected",
    [((-1.0, 1.0), 4.0), ((-3.0, 1.0), 5.0), ((-1.0, 99.0), 2.4), ((-99.0, 1.0), 5.6), ((-1.0, 0.0), 6.0)],
)
def test_searches_start_where_the_slope_would_vanish(slopes, expected):
    grid = np.array([[2.0, 6.0], [0.0, 0.0], slopes])
    assert search._secant(grid, 0) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_samples_and_all_rows_have_the_same_optimum_and_fewer_scans(weighted):
    X, rng = covariates(300)
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=300))
    root = np.sqrt(rng.uniform(0.5, 2.0, 300)) if weighted else NO_WEIGHTS
    sampled, whole = regress(y, X, root=root, sample=60), regress(y, X, root=root)
    np.testing.assert_allclose(sampled[0][[LMBDA, NLL, CURVATURE]], whole[0][[LMBDA, NLL, CURVATURE]], rtol=1e-7)
    np.testing.assert_allclose(sampled[1][2:], whole[1][2:], rtol=1e-8)
    at = np.arange(60) * 5
    of_sample = regress(y[at], X[at], root=root[at] if weighted else root)
    assert abs(sampled[1][1] - sampled[1][0]) == pytest.approx(abs(whole[1][1] - whole[1][0]), rel=0.5)
    assert of_sample[0][LMBDA] != sampled[0][LMBDA]


def test_a_sample_whose_design_lacks_rank_is_not_used():
    X, rng = covariates(200)
    X[:, 2] = np.arange(200) % 20 == 0
    y = np.exp(0.3 * X[:, 1] + rng.normal(size=200))
    y[np.arange(200) % 40 == 0] = np.nan
    seen = ~np.isnan(y)
    sampled, dropped = regress(y, X, sample=20)[0], regress(y[seen], X[seen])[0]
    assert sampled[STATUS] == dropped[STATUS] == Status.SCANNED
    assert sampled[LMBDA] == pytest.approx(dropped[LMBDA], abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_missing", [0, 7])
def test_samples_are_evenly_spaced_rows(n_missing, weighted):
    y, X, family, w = response("both signs", 45)
    y[:: 45 // n_missing if n_missing else 100] = np.nan if n_missing else y[0]
    seen = ~np.isnan(y)
    one = design(X, np.sqrt(w) if weighted else NO_WEIGHTS, 9)
    with np.errstate(all="ignore"):
        column, good = prepare(y, summarize_values(y, None), family, one, likelihood.new_regression_work(one))
    assert good
    logs = np.where(seen, np.sign(y) * np.log1p(abs(y)), 0.0) / column.rows.sigma
    v = (w if weighted else np.ones(45)) * seen
    every = slice(0, 45, 5)
    for rows, part, basis in ((column.rows, slice(0, 45), one.basis), (column.sample, every, one.sample_basis)):
        np.testing.assert_allclose(rows.logs, logs[part], rtol=1e-13)
        assert rows.weight == pytest.approx(v[part].sum(), rel=1e-14)
        assert rows.jacobian == pytest.approx(np.average(logs[part], weights=v[part]), rel=1e-12)
        assert rows.basis is basis
        if n_missing:
            np.testing.assert_array_equal(rows.kept, seen[part])
            gram = basis[:, seen[part]] @ basis[:, seen[part]].T
            np.testing.assert_allclose(np.tril(rows.gram), np.linalg.cholesky(gram), atol=1e-13)
        else:
            assert rows.kept.size == rows.gram.size == 0
    y[every] = np.where(np.arange(9) < 7, np.nan, 1.0)  # too few rows of the sample have values
    with np.errstate(all="ignore"):
        column, good = prepare(y, summarize_values(y, None), family, one, likelihood.new_regression_work(one))
    assert good
    assert column.sample is column.rows


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("at", [0.3, 9.0, 60.0, 1e9])
def test_scans_extend_while_the_likelihood_rises(at, sign, monkeypatch):
    """Compare the scan with its rules: beyond 8 steps on a side, each step is longer by half than the one before.

    A scan extends by up to 40 steps.
    """
    seen = []

    def evaluate(rows, mu, work):
        seen.append(mu)
        return likelihood.Evaluation((mu - sign * at) ** 2, mu - sign * at, 1.0, 0.0, 1.0, 0.0, 1.0)

    monkeypatch.setattr(search, "evaluate", evaluate)
    X, _ = covariates(12)
    work = likelihood.new_regression_work(design(X))
    scan = search._scan(None, 0.1, 2.0, work)
    points = list(0.1 + 0.25 * np.arange(-8, 9))
    wide = 0.25
    while (points[-1] - at < 0.0 if sign > 0.0 else points[0] + at > 0.0) and len(points) < 57:
        wide *= 1.5
        points = [*points, points[-1] + wide] if sign > 0.0 else [points[0] - wide, *points]
    found = work.grid[:, scan.first : scan.last + 1]
    np.testing.assert_allclose(found[0], points, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found[1], (found[0] - sign * at) ** 2)
    np.testing.assert_allclose(found[2], found[0] - sign * at)
    assert scan.n_eval == len(seen) == len(points)
    assert scan.n_exact == 0
    assert scan.n_minima == (points[0] < sign * at < points[-1])


@pytest.mark.parametrize("drop", [1e-3, 0.1, 3.0])
def test_ends_of_intervals_take_few_evaluations(drop, monkeypatch):
    y, X, family, _ = response("both signs")
    row, _ = regress(y, X, family)
    one, seen = design(X), []
    work = likelihood.new_regression_work(one)
    with np.errstate(all="ignore"):
        column, _ = prepare(y, summarize_values(y, None), family, one, work)
        evaluate = likelihood.evaluate
        monkeypatch.setattr(fit, "evaluate", lambda *a: seen.append(a[1]) or evaluate(*a))
        for side in (-1.0, 1.0):
            seen.clear()
            end = fit._drop_point(column, fit._exponent(column, row[LMBDA]), drop, side, work)
            assert 3 <= len(seen) <= 10
            assert evaluate(column.rows, end, work).g - row[NLL] == pytest.approx(drop, rel=1e-9)


def test_designs_that_lose_rank_are_refused():
    X, _ = covariates(12)
    basis, out = design(X).basis, np.empty((3, 3))
    kept = (np.arange(12) < 2).astype(float)
    assert likelihood.factor_gram(basis, kept, out) is False
    kept[:] = 1.0
    assert likelihood.factor_gram(basis, kept, out)
    np.testing.assert_allclose(np.tril(out), np.eye(3), atol=1e-13)
