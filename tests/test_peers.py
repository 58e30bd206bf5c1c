"""Transforms inside the pipelines and forecasters of other libraries; each test needs its library (extra ``peers``)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from pages import ROOT, blocks
from scipy.special import inv_boxcox
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer as Theirs
from sklearn.preprocessing import StandardScaler

import powerkern as pk
from powerkern.sklearn import PowerTransformer

PAGE = ROOT / "docs" / "guide" / "libraries.rst"
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("default")  # these libraries issue deprecation warnings of their own
RNG = np.random.default_rng(20261124)
FRAME = pd.DataFrame({"a": RNG.lognormal(size=120), "b": RNG.lognormal(size=120), "word": ["x", "y", "y"] * 40})
LABELS = (RNG.random(120) < 0.2).astype(int)
FITTED = pk.fit(FRAME[["a", "b"]]).transform(FRAME[["a", "b"]])


def walk(n: int, freq: str = "D") -> pd.Series:
    """Return the exponential of a random walk of `n` steps, as a series with dates at intervals of `freq`."""
    index = pd.date_range("2020-01-01", periods=n, freq=freq)
    return pd.Series(np.exp(3.0 + np.cumsum(RNG.normal(0.0, 0.1, n))), index=index, name="y")


def mean_by_sampling(mean: float, sd: float, lmbda: float) -> float:
    """Return the mean of inv_boxcox(y, lambda) for y ~ N(mean, sd**2), by averaging over 200,000 quantiles of y."""
    from scipy.special import ndtri

    points = ndtri((np.arange(200_000) + 0.5) / 200_000)
    return float(np.mean(inv_boxcox(mean + sd * points, lmbda)))


def test_feature_engine_wraps_the_transformer():
    wrappers = pytest.importorskip("feature_engine.wrappers")
    wrapper = wrappers.SklearnTransformerWrapper(PowerTransformer(), variables=["b"]).fit(FRAME)
    z = wrapper.transform(FRAME)
    assert z[["a", "word"]].equals(FRAME[["a", "word"]])
    assert np.array_equal(z["b"], FITTED["b"])
    assert np.allclose(wrapper.inverse_transform(z)["b"], FRAME["b"], rtol=1e-12)


def test_skforecast_forecasts_as_by_hand():
    recursive = pytest.importorskip("skforecast.recursive")
    y = walk(150)
    forecaster = recursive.ForecasterRecursive(
        estimator=LinearRegression(), lags=4, transformer_y=PowerTransformer("box-cox")
    )
    forecaster.fit(y)
    fit = pk.fit(y, "box-cox")
    by_hand = recursive.ForecasterRecursive(estimator=LinearRegression(), lags=4)
    by_hand.fit(pd.Series(np.ravel(fit.transform(y)), index=y.index))
    expected = fit.inverse_transform(by_hand.predict(5).to_numpy())
    assert np.allclose(forecaster.predict(5), np.ravel(expected), rtol=1e-10)


def test_sktime_adapts_the_transformer_to_series():
    adapt = pytest.importorskip("sktime.transformations.series.adapt")
    from sktime.forecasting.compose import TransformedTargetForecaster
    from sktime.forecasting.naive import NaiveForecaster

    y = walk(100)
    steps = [("power", adapt.TabularToSeriesAdaptor(PowerTransformer("box-cox"))), ("last", NaiveForecaster("last"))]
    forecast = TransformedTargetForecaster(steps).fit(y, fh=[1, 2]).predict()
    assert np.allclose(forecast, y.iloc[-1], rtol=1e-10)  # the median of a random walk


def test_sktime_forecasts_are_means():
    naive = pytest.importorskip("sktime.forecasting.naive")
    y = walk(100)
    fit = pk.fit(y, "box-cox", standardize=False)
    forecaster = naive.NaiveForecaster("last").fit(fit.transform(y), fh=[1, 5])
    mean, sd = forecaster.predict().to_numpy(), np.sqrt(forecaster.predict_var().to_numpy()[:, 0])
    expected = [mean_by_sampling(m, s, fit.lmbda.item()) for m, s in zip(mean, sd, strict=True)]
    assert np.allclose(np.ravel(fit.inverse_mean(mean, sd)), expected, rtol=1e-5)


def test_statsforecast_means_agree_with_sampling():
    statsforecast = pytest.importorskip("statsforecast")
    from statsforecast.models import HistoricAverage

    days = np.tile(pd.date_range("2020-01-01", periods=80), 3)
    panel = pd.DataFrame({"unique_id": np.repeat(list("abc"), 80), "ds": days, "y": RNG.lognormal(3.0, 0.5, 240)})
    fit = pk.fit(panel[["unique_id", "y"]], "box-cox", groups="unique_id")
    models = statsforecast.StatsForecast([HistoricAverage(alias="y")], freq="D")
    forecast = models.forecast(df=fit.transform(panel), h=2, level=[95])
    sd = (forecast["y-hi-95"] - forecast["y"]).to_numpy() / 1.959964
    mean = fit.inverse_mean(forecast["y"], sd, forecast["unique_id"])
    for name in "abc":
        alone, rows = pk.fit(panel.loc[panel["unique_id"] == name, "y"], "box-cox"), forecast["unique_id"] == name
        raw = forecast["y"][rows] * alone.scale + alone.loc
        exact = [mean_by_sampling(m, s, alone.lmbda[0]) for m, s in zip(raw, sd[rows] * alone.scale, strict=True)]
        assert np.allclose(mean[rows], exact, rtol=1e-4)


def test_pyod_detects_in_a_pipeline_as_alone():
    iforest = pytest.importorskip("pyod.models.iforest")
    numbers = FRAME[["a", "b"]].to_numpy()
    pipeline = make_pipeline(PowerTransformer(), iforest.IForest(random_state=0)).fit(numbers)
    alone = iforest.IForest(random_state=0).fit(FITTED.to_numpy())
    assert np.array_equal(pipeline.decision_function(numbers), alone.decision_function(FITTED.to_numpy()))


def test_imbalanced_learn_resamples_transformed_rows():
    pipeline = pytest.importorskip("imblearn.pipeline")
    from imblearn.over_sampling import SMOTE

    steps = PowerTransformer(), SMOTE(random_state=0), LogisticRegression()
    model = pipeline.make_pipeline(*steps).fit(FRAME[["a", "b"]], LABELS)
    rows, labels = SMOTE(random_state=0).fit_resample(FITTED.to_numpy(), LABELS)
    expected = LogisticRegression().fit(rows, labels).predict_proba(FITTED.to_numpy())
    assert np.allclose(model.predict_proba(FRAME[["a", "b"]]), expected, rtol=1e-10)


def test_the_code_of_the_page_runs():
    """The code of `PAGE` runs once the names that it uses are defined: a data frame, a series `y` and a long panel."""
    for module in ("feature_engine", "imblearn", "pyod", "skforecast", "sktime", "statsforecast"):
        pytest.importorskip(module)
    panel = pd.DataFrame({"unique_id": ["a"] * 60 + ["b"] * 60, "ds": np.tile(pd.date_range("2020", periods=60), 2)})
    names = {
        "frame": pd.DataFrame({"price": RNG.lognormal(size=30), "area": RNG.lognormal(size=30), "word": ["x"] * 30}),
        "y": walk(60),
        "panel": panel.assign(y=RNG.lognormal(3.0, 0.2, 120)),
    }
    for block in blocks(PAGE, "python"):
        exec(compile(block, str(PAGE), "exec"), names)
    numbers, labels = FRAME[["a", "b"]], LABELS
    assert set(names["classifier"].fit(numbers, labels).predict(numbers)) == {0, 1}
    assert np.isfinite(names["detector"].fit(numbers).decision_function(numbers)).all()
    assert np.isfinite(names["forecast"]["mean"]).all()
    assert (names["forecast"]["mean"] > 0.0).all()


class _Reverting:
    """A mixin like TabPFN's: return a feature unchanged if its transform is not finite or lacks unit variance."""

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        Z = super().transform(X)  # type: ignore[misc]
        with np.errstate(all="ignore"):
            spoilt = ~np.isfinite(Z).all(axis=0) | (abs(np.var(Z, axis=0) - 1.0) > 1e-3)
        self.reverted_ = np.flatnonzero(spoilt).tolist()
        Z[:, spoilt] = X[:, spoilt]
        return Z


class SafeTheirs(_Reverting, Theirs):
    pass


class SafeOurs(_Reverting, PowerTransformer):
    pass


@pytest.mark.filterwarnings("ignore")
def test_steps_that_are_overridden_to_be_safe_find_nothing_to_do():
    rng = np.random.default_rng(1)
    X = np.column_stack([2000.0 + rng.random(200), rng.lognormal(size=200)])
    ours = SafeOurs()
    Z = ours.fit_transform(X)
    assert ours.reverted_ == []
    assert np.array_equal(Z, PowerTransformer().fit_transform(X))
    theirs = SafeTheirs().fit(X)
    theirs.transform(X)
    assert theirs.reverted_ == [0]


def test_assigned_lambdas_are_used():
    """Lambdas assigned after the fit are used with the fitted mean and scale, as in scikit-learn."""
    X = FRAME[["a", "b"]].to_numpy()
    ours, theirs = PowerTransformer().fit(X), Theirs().fit(X)
    ours.lambdas_ = theirs.lambdas_ = np.array([0.5, -0.5])
    assert ours.lambdas_.tolist() == [0.5, -0.5]
    assert np.allclose(ours.transform(X), theirs.transform(X), rtol=1e-5)
    assert np.allclose(ours.inverse_transform(ours.transform(X)), X, rtol=1e-10)
    made = make_pipeline(PowerTransformer(standardize=False), StandardScaler())
    made[0].lambdas_ = np.array([0.5, -0.5])
    assert np.allclose(made[1].fit_transform(made[0].transform(X)).std(axis=0), 1.0)
