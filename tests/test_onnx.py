"""ONNX graphs, run by onnxruntime, are compared with the fits from which they were made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import preprocessing
from sklearn.exceptions import NotFittedError

import powerkern as pk

skl2onnx = pytest.importorskip("skl2onnx")
ort = pytest.importorskip("onnxruntime")

from powerkern.onnx import (  # noqa: E402
    _Builder,
    _forward,
    _inverse,
    _Treatment,
    _version_of,
    to_onnx,
)
from powerkern.sklearn import PowerTransformer  # noqa: E402


def run(model: Any, x: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (name,) = (one.name for one in session.get_inputs())
    return np.asarray(session.run(None, {name: x})[0])


def table(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(150, 4)) * [1.0, 1.0, 50.0, 1.0]
    X[::9, 1] = np.nan
    X[:, 3] = 1950.0 + np.arange(150) % 60  # years, whose lambda is large
    return X.astype(dtype)


FITS: dict[str, dict[str, Any]] = {
    "Box-Cox": {"family": "box-cox"},
    "Yeo-Johnson": {},
    "Box-Cox with a shift": {"family": "box-cox", "shift": [0.5, 1.0, -0.001, -1900.0]},
    "of either family": {"family": "best"},
    "robust": {"estimator": "robust"},
    "robust Box-Cox": {"family": "box-cox", "estimator": "robust"},
    "lambda 0 and 2": {"lmbda": [0.0, 2.0, 1.0, 1e-9]},
    "Box-Cox, lambda 0": {"family": "box-cox", "lmbda": [0.0, 0.0, 1.0, -1e-12]},
    "lambda beyond 2 and below 0": {"lmbda": [-1.5, 2.5, 3.0, -3.0]},
}


@pytest.mark.filterwarnings("ignore:.*so flat there:UserWarning")  # for the years
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", FITS)
def test_graphs_agree_with_transform_and_inverse(case: str, dtype: str, standardize: bool) -> None:
    X = table(dtype)
    for data in (X, -X, X - 1.0) if FITS[case].get("family") is None else (X,):
        fit = pk.fit(data, standardize=standardize, **FITS[case])
        Z = fit.transform(data)
        found = run(to_onnx(fit, dtype=dtype), data)
        assert found.dtype == dtype
        assert_allclose(
            found, Z, rtol=1e-6 if dtype == "float32" else 1e-12, atol=1e-6 if dtype == "float32" else 1e-12
        )
        resolved = slice(0, 4) if standardize else slice(0, 3)  # raw years have lost all digits
        back = run(to_onnx(fit, inverse=True, dtype=dtype), Z)
        expected = fit.inverse_transform(Z, out_of_range="clip")
        rtol = 2e-6 if dtype == "float32" else 1e-9
        ends = (data == fit.x_min) | (data == fit.x_max)  # fits restore these exactly, graphs do not
        back, expected = np.where(ends, 0.0, back), np.where(ends, 0.0, expected)
        assert_allclose(back[:, resolved], expected[:, resolved], rtol=rtol, atol=rtol)


def test_huge_lambdas_stay_accurate() -> None:
    x = np.array([[10.0], [10.0], [10.0], [9.9]])
    for data, family in ((x, "box-cox"), (x, "yeo-johnson"), (1e6 + np.arange(50.0)[:, None] ** 1.5, "box-cox")):
        fit = pk.fit(data, family)
        assert abs(fit.lmbda[0]) > 20.0
        found = run(to_onnx(fit, dtype="float64"), data)
        assert_allclose(found, fit.transform(data), rtol=1e-9, atol=1e-9)
        assert_allclose(run(to_onnx(fit, inverse=True, dtype="float64"), found), data, rtol=1e-11)


def test_graphs_return_nan_outside_domain_and_range() -> None:
    fit = pk.fit(np.arange(1.0, 20.0), "box-cox", lmbda=1.0)
    assert np.isnan(run(to_onnx(fit, dtype="float64"), np.array([[-1.0]]))[0, 0])
    assert np.isnan(run(to_onnx(fit, inverse=True, dtype="float64"), np.array([[-9.0]]))[0, 0])


BEYOND = np.array([-1e6, -50.0, -5.0, -2.0, -1.0, 0.0, 1.0, 2.0, 5.0, 50.0, 1e3, 1e6, np.inf, np.nan])[:, np.newaxis]


@pytest.mark.filterwarnings("ignore:Some values:UserWarning", "ignore:.*so flat there:UserWarning")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    ("family", "lmbda"),
    [("box-cox", a) for a in (-0.5, 0.0, 0.5, 2.0)] + [("yeo-johnson", a) for a in (-1.0, 2.0, 3.0)],
)
def test_the_inverse_beyond_the_range_is_that_of_the_fit(family: str, lmbda: float, standardize: bool) -> None:
    X = np.random.default_rng(0).lognormal(size=(100, 1))
    fit = pk.fit(X, family, lmbda=[lmbda], standardize=standardize)
    found = run(to_onnx(fit, inverse=True, dtype="float64"), BEYOND)
    expected = fit.inverse_transform(BEYOND)
    assert_array_equal(np.isnan(found), np.isnan(expected))
    assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.filterwarnings("ignore:.*(beyond the range|treated as missing|not fitted):UserWarning")
@pytest.mark.parametrize("infinite", ["missing", "keep"])
@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
def test_graphs_of_transformers_clip_and_treat_infinite_values(method: str, infinite: str) -> None:
    X = np.random.default_rng(0).lognormal(sigma=0.5, size=(100, 2)) - (method == "yeo-johnson")
    X[:, 1] = 3.0
    transformer = PowerTransformer(method, out_of_range="clip", infinite=infinite).fit(X)
    cells = np.column_stack([np.append(BEYOND, -np.inf), np.append(BEYOND, -np.inf)])
    for inverse, apply in ((False, transformer.transform), (True, transformer.inverse_transform)):
        given = np.where(np.isinf(cells), np.nan, cells) if inverse and infinite == "missing" else cells  # others raise
        found = run(to_onnx(transformer, inverse=inverse, dtype="float64"), given)
        assert_allclose(found, apply(given), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*so flat there:UserWarning")
def test_graphs_of_transformers_and_pipelines_agree_with_them() -> None:
    import skl2onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    X = table("float64")[:, [0, 2, 2]]
    X[:, 2] = 3.0
    transformer = PowerTransformer().fit(X)
    assert_allclose(run(to_onnx(transformer, dtype="float64"), X), transformer.transform(X), atol=1e-12)
    back = run(to_onnx(transformer, inverse=True, dtype="float64"), transformer.transform(X))
    assert_allclose(back, X, rtol=1e-11)
    for kind, dtype in ((DoubleTensorType, np.float64), (FloatTensorType, np.float32)):
        model = skl2onnx.convert_sklearn(transformer, initial_types=[("X", kind([None, 3]))], target_opset=17)
        found = run(model, X.astype(dtype))
        assert found.dtype == dtype
        assert_allclose(found, transformer.transform(X), rtol=1e-6, atol=1e-6)
    pipeline = make_pipeline(PowerTransformer(), LinearRegression()).fit(X, X[:, 0])
    model = skl2onnx.convert_sklearn(pipeline, initial_types=[("X", FloatTensorType([None, 3]))], target_opset=17)
    assert_allclose(run(model, X.astype(np.float32)).ravel(), pipeline.predict(X), rtol=1e-4, atol=1e-4)


def test_invalid_models_and_dtypes_are_refused() -> None:
    fit = pk.fit(table("float64"))
    with pytest.raises(ValueError, match="dtype must be"):
        to_onnx(fit, dtype="float16")
    with pytest.raises(TypeError, match=r"to_onnx needs .* got PowerTransformer; PowerTransformer\.from_"):
        to_onnx(preprocessing.PowerTransformer())
    with pytest.raises(NotFittedError):
        to_onnx(PowerTransformer())
    assert_array_equal([len(one.graph.input) for one in (to_onnx(fit), to_onnx(fit, inverse=True))], 1)


def test_a_transformer_of_some_columns_is_refused():
    X = np.random.default_rng(0).lognormal(size=(50, 2))
    transformer = PowerTransformer(variables=[0]).fit(X)
    with pytest.raises(ValueError, match="with variables= cannot be converted"):
        to_onnx(transformer)
    with pytest.raises(ValueError, match="with variables= cannot be converted"):
        skl2onnx.to_onnx(transformer, X)


# --- expressions, evaluated by NumPy ------------------------------------------------------------------

OPERATORS: dict[str, Any] = {
    "Sub": np.subtract, "Add": np.add, "Mul": np.multiply, "Div": np.divide, "Log": np.log, "Exp": np.exp,
    "Abs": np.abs, "Neg": np.negative, "Less": np.less, "Greater": np.greater, "Equal": np.equal,
    "And": np.logical_and, "Where": np.where, "IsInf": np.isinf,
}  # fmt: skip


class Interpreter:
    """An interpreter that evaluates the operators of a graph while the graph is being built."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.builder = _Builder(self.add, self.constant)

    def add(self, operator: str, *inputs: str) -> str:
        with np.errstate(all="ignore"):
            return self.constant(OPERATORS[operator](*(self.values[name] for name in inputs)))

    def constant(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return name


SMALL = np.concatenate([[0.0], 10.0 ** np.linspace(-300, -1, 80), [0.2, 0.3, 0.49, 0.5, 0.51, 0.7, 1.0, 3.0, 20.0]])
BOTH = np.concatenate([-SMALL[::-1], SMALL])


def test_ratios_of_logs_and_exponentials_have_all_digits() -> None:
    machine = Interpreter()
    t = machine.constant(BOTH)
    with np.errstate(all="ignore"):
        expected = np.where(BOTH == 0.0, 1.0, np.expm1(BOTH) / BOTH)
        assert_allclose(machine.values[machine.builder.expm1_ratio(t)], expected, rtol=1e-15)
        assert_allclose(machine.values[machine.builder.expm1(t)], np.expm1(BOTH), rtol=1e-15)
    above = BOTH[BOTH > -0.9]
    t = machine.constant(above)
    with np.errstate(all="ignore"):
        expected = np.where(above == 0.0, 1.0, np.log1p(above) / above)
    assert_allclose(machine.values[machine.builder.log1p_ratio(t)], expected, rtol=1e-15)
    found = machine.builder.log(machine.constant(1.0 + above), t)
    assert_allclose(machine.values[found], np.log1p(above), rtol=1e-15)


@pytest.mark.parametrize("m", [-3.0, -1e-9, 0.0, 1e-9, 1.0, 2.5])
def test_powers_and_their_logs_are_inverse(m: float) -> None:
    machine = Interpreter()
    d = np.linspace(-0.25, 0.25, 21)
    power = machine.builder.power(np.array([m]), machine.constant(d))
    expected = d if m == 0.0 else np.expm1(m * d) / m
    assert_allclose(machine.values[power], expected, rtol=1e-14, atol=1e-300)
    assert_allclose(machine.values[machine.builder.log_of_power(np.array([m]), power)], d, rtol=1e-13, atol=1e-17)


@pytest.mark.filterwarnings("ignore:.*(not fitted|beyond|lambda|so flat|missing).*:UserWarning")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson", "best"])
def test_expressions_of_fits_have_all_digits(family: str, standardize: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(60, 4)) * [1.0, 100.0, 1e-6, 1.0]
    if family != "box-cox":
        X[:, 0] -= 1.5
        X[:, 1] *= -1.0
    X[:, 3] = 3.0
    fit = pk.fit(X, family, standardize=standardize)
    plain = _Treatment(False, False, "raise")
    machine = Interpreter()
    found = machine.values[_forward(machine.builder, machine.constant(X), fit, plain)]
    Z = fit.transform(X)
    assert_allclose(found, Z, rtol=1e-12, atol=1e-12)
    back = machine.values[_inverse(machine.builder, machine.constant(Z), fit, plain)]
    assert_allclose(back, X, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*(not fitted|beyond|lambda|so flat|missing).*:UserWarning")
@pytest.mark.parametrize("infinite", ["missing", "keep", "raise"])
def test_expressions_clip_and_treat_infinite_values(infinite: str) -> None:
    X = np.column_stack([np.random.default_rng(0).lognormal(size=50), np.full(50, 3.0)])
    fit = pk.fit(X, "box-cox")
    cells = np.array([-1.0, 0.0, 1e-9, 0.7, 1e9, np.inf, -np.inf, np.nan])[:, np.newaxis] * [1.0, 1.0]
    low, high = X[:, 0].min(), X[:, 0].max()
    for clips in (True, False):
        for constant in (True, False):
            machine = Interpreter()
            name = machine.constant(cells)
            treatment = _Treatment(constant, clips, infinite)
            found = machine.values[_forward(machine.builder, name, fit, treatment)]
            inner = np.clip(cells[:5, 0], low, high) if clips else cells[3:4, 0]
            rows = slice(0, 5) if clips else slice(3, 4)
            assert_allclose(
                found[rows, 0], fit.transform(np.column_stack([inner, inner]))[:, 0], rtol=1e-12, atol=1e-12
            )
            expected = np.clip(cells[:5, 1], 3.0, 3.0) if clips else cells[:5, 1]
            assert_allclose(found[:5, 1], expected - (3.0 if constant else 0.0))
            ends = {"missing": [np.nan, np.nan], "keep": [np.inf, -np.inf]}.get(infinite)
            if ends:
                assert_array_equal(found[5:7], np.column_stack([ends, ends]))
            assert np.isnan(found[7]).all()
            back = machine.values[
                _inverse(machine.builder, machine.constant(np.array([[-50.0, 0.5], [50.0, -0.5]])), fit, treatment)
            ]
            if clips:
                assert_allclose(back[:, 0], [low, high])
            shift = 3.0 if constant else 0.0
            assert_allclose(back[:, 1], np.array([0.5, -0.5]) + shift)


def test_operators_have_the_version_in_which_they_last_changed() -> None:
    assert (_version_of("Cast"), _version_of("Add"), _version_of("IsInf"), _version_of("Where")) == (13, 14, 10, 16)
