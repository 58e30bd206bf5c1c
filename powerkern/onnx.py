"""Convert transforms to ONNX graphs, for runtimes without Python; tested with onnxruntime.

`to_onnx` converts a fit, or its inverse, to a model. Importing this module also registers a converter with skl2onnx, so
that pipelines with a `powerkern.sklearn.PowerTransformer` can be converted.

A graph computes in float64, whatever its input and output types, relative to the reference value of the fit, which lies
inside the data. It is as accurate as the fit, to about 1e-13 of the standard deviation, even if lambda is in the
hundreds. It differs from `PowerFit.transform` in that it never raises or warns: values outside the domain become NaN or
infinite. Powers of values far beyond the fitted data may overflow and become infinite, as in `PowerFit`. The inverse of
a transformed value that is infinite, or outside the range of the transform, is NaN (even for -inf under Box-Cox, whose
inverse may be 0 in `PowerFit`). A graph of a `PowerTransformer` with ``out_of_range="clip"`` clips in both directions,
and ``infinite="missing"`` and ``infinite="keep"`` apply in graphs, too. Raw output (``standardize=False``) with lambda
in the hundreds has lost its digits, as in `PowerFit`, and cannot be inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._input.arrays import as_choice, as_flag
from powerkern._input.messages import suggest_keywords
from powerkern._results.image_repair import fitted_range
from powerkern._results.inversion import transformed_ends
from powerkern._results.power_fit import PowerFit
from powerkern._status import Status, is_failed
from powerkern._typing import FloatArray
from powerkern.sklearn import PowerTransformer

try:
    import skl2onnx
    from onnx import TensorProto, checker, defs, helper, numpy_helper
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("powerkern.onnx needs ONNX: pip install skl2onnx onnxruntime") from error

__all__ = ["to_onnx"]

_OPSET, _IR_VERSION = 17, 8
_DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def to_onnx(fit: PowerFit | PowerTransformer, *, inverse: bool = False, dtype: str = "float32") -> Any:
    """Convert the transform of a fit, or its inverse, to an ONNX model.

    Parameters
    ----------
    fit : PowerFit or fitted PowerTransformer
        The fit, of any family and estimator, with or without shift, standardised or raw.
    inverse : bool, default False
        Convert the inverse transform instead.
    dtype : {"float32", "float64"}, default "float32"
        Type of input and output. The graph computes in float64.

    Returns
    -------
    onnx.ModelProto
        A model with one input "X" and one output "Y", both (n, n_features). NaN stays NaN.

    Raises
    ------
    TypeError
        If `fit` is neither a PowerFit nor a PowerTransformer, or `inverse` is not a bool.
    ValueError
        If `dtype` is unknown, or the transformer has `variables`.
    sklearn.exceptions.NotFittedError
        If the transformer is not fitted.

    Notes
    -----
    The graph uses operators of opset 17: Log, Exp, Where and arithmetic. Differences of nearby logarithms and powers
    are computed with Kahan's corrections, since ONNX has neither log1p nor expm1.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from onnxruntime import InferenceSession
    >>> from powerkern.onnx import to_onnx
    >>> X = np.random.default_rng(0).lognormal(size=(100, 2)).astype(np.float32)
    >>> fit = pk.fit(X)
    >>> session = InferenceSession(to_onnx(fit).SerializeToString())
    >>> Z = session.run(None, {"X": X})[0]
    >>> bool(np.abs(Z - fit.transform(X)).max() < 1e-6)
    True
    """
    power = fit if isinstance(fit, PowerFit) else _fit_of(fit)
    as_flag("inverse", inverse)
    kind = _DTYPES[as_choice("dtype", dtype, _DTYPES)]
    graph = _Graph()
    build = _inverse if inverse else _forward
    wide = graph.add("Cast", "X", to=TensorProto.DOUBLE)
    graph.add("Cast", build(_Builder(graph.add, graph.constant), wide, power, _treatment_of(fit)), output="Y", to=kind)
    ends = [helper.make_tensor_value_info(name, kind, [None, power.n_features]) for name in "XY"]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "powerkern", ends[:1], ends[1:], graph.constants),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="powerkern",
    )
    checker.check_model(model)
    return model


def _fit_of(transformer: object) -> PowerFit:
    """Return the fit of a transformer; raise if the transformer cannot be converted."""
    if not isinstance(transformer, PowerTransformer):
        raise TypeError(
            f"to_onnx needs a PowerFit or a powerkern.sklearn.PowerTransformer, got {type(transformer).__name__}; "
            "PowerTransformer.from_sklearn converts scikit-learn's transformer"
        )
    check_is_fitted(transformer)
    if transformer.variables is not None:
        raise ValueError(
            "a PowerTransformer with variables= cannot be converted; select the columns by a ColumnTransformer instead"
        )
    fit: PowerFit = transformer.power_fit_
    return fit


def _treatment_of(fit: PowerFit | PowerTransformer) -> _Treatment:
    """Return the treatment that a fit, or a fitted transformer, gives to values without an image."""
    if isinstance(fit, PowerFit):
        return _Treatment(False, False, fit._spec.infinite)
    return _Treatment(True, fit.out_of_range == "clip", fit.infinite)


class _Graph:
    """The nodes and constants of a model under construction."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: FloatArray | NDArray[np.bool_]) -> str:
        """Add a constant and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name


class _Builder:
    """Builds array expressions. Methods take and return names of arrays; operators of ONNX are methods, too.

    Parameters
    ----------
    add : function
        Adds a node for an operator and its inputs; returns the name of the output.
    constant : function
        Adds a constant; returns its name.
    """

    def __init__(self, add: Callable[..., str], constant: Callable[[Any], str]) -> None:
        self._add, self._constant = add, constant

    def of(self, values: Any) -> str:
        """Return the name of a new constant (one number, or one per column); if `values` is a name, return it."""
        if isinstance(values, str):
            return values
        array = np.asarray(values)
        return self._constant(array if array.dtype == np.bool_ else array.astype(np.float64))

    def __getattr__(self, operator: str) -> Callable[..., str]:
        return lambda *inputs: self._add(operator, *(self.of(a) for a in inputs))

    def log(self, u: str, q: str) -> str:
        """Build ``ln u`` from u = 1 + q and q. Kahan's correction restores the digits of q lost by rounding u."""
        rest = self.Sub(u, 1.0)
        near = self.Less(self.Abs(rest), 0.5)
        exact = self.Equal(rest, 0.0)
        factor = self.Div(q, self.Where(exact, 1.0, rest))
        log = self.Log(u)
        return self.Where(near, self.Where(exact, q, self.Mul(log, factor)), log)

    def expm1_ratio(self, t: str) -> str:
        """Build ``expm1(t)/t``, which is 1 at t = 0."""
        u = self.Exp(t)
        rest, exact = self.Sub(u, 1.0), self.Equal(u, 1.0)
        near = self.Less(self.Abs(t), 0.5)
        log = self.Where(exact, 1.0, self.Log(u))
        by_log = self.Where(exact, 1.0, self.Div(rest, log))
        return self.Where(near, by_log, self.Div(rest, self.Where(near, 1.0, t)))

    def log1p_ratio(self, t: str) -> str:
        """Build ``log1p(t)/t``, which is 1 at t = 0."""
        zero = self.Equal(t, 0.0)
        return self.Where(zero, 1.0, self.Div(self.log(self.Add(t, 1.0), t), self.Where(zero, 1.0, t)))

    def power(self, exponent: FloatArray, d: str) -> str:
        """Build ``expm1(m d)/m`` for the exponents m; the result is d at m = 0."""
        return self.Mul(d, self.expm1_ratio(self.Mul(d, exponent)))

    def log_of_power(self, exponent: FloatArray, v: str) -> str:
        """Build ``log1p(m v)/m`` for the exponents m; the result is v at m = 0."""
        return self.Mul(v, self.log1p_ratio(self.Mul(v, exponent)))

    def expm1(self, d: str) -> str:
        """Build ``exp(d) - 1``."""
        return self.Mul(d, self.expm1_ratio(d))


class _Treatment(NamedTuple):
    """Treatment of constant columns, of values beyond the range of the fitted data, and of infinite values.

    `constant`: whether constant columns become 0, as in `powerkern.sklearn.PowerTransformer`. `clips`: whether values
    beyond the range of the fitted data become its nearest end, as with ``out_of_range="clip"``. `infinite` is as in
    `PowerFit.transform`; a graph cannot raise, so "raise" leaves infinite values to the formula.
    """

    constant: bool
    clips: bool
    infinite: str


class _Constants:
    """Constants of the transforms, each an array with one entry per column.

    Let b_m(t) = (e^(m t) - 1)/m, x' = sign (x - center)/divisor and u = (offset + x')/(offset + a). For x' >= 0, and
    always for Box-Cox, psi is ``growth b_m(ln u)``. Otherwise it is ``zero - other_growth b_(2-m)(log1p(-x'))``. Both
    are relative to psi at a >= 0, a value inside the data.
    """

    def __init__(self, fit: PowerFit, constant: bool) -> None:
        columns = fit._table
        self.mirrored = columns.mirrored
        self.offset = self.mirrored.astype(np.float64)
        self.center, self.divisor = columns.center, columns.divisor
        ref = columns.ref if fit.standardize else 1.0 - self.offset
        self.sign = np.where(ref < 0.0, -1.0, 1.0)
        self.a = abs(ref)
        self.m = np.where(ref < 0.0, 2.0 - columns.lmbda, columns.lmbda)
        log_factor = np.where((ref == 0.0) & fit.standardize, columns.log_factor, 0.0)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = np.log1p(self.a)
            self.growth = np.exp(-log_factor)
            self.other_growth = np.exp(-log_factor - self.m * size)
            start = np.where(self.m == 0.0, -size, np.expm1(-self.m * size) / self.m)
            self.zero = np.where(ref == 0.0, 0.0, start)
        self.slope = self.sign * (columns.slope if fit.standardize else 1.0)
        self.intercept = columns.intercept if fit.standardize else np.zeros(fit.n_features)
        self.passes = is_failed(fit.status)
        self.start = np.where((columns.status == Status.CONSTANT) & (constant and fit.standardize), fit.x_min, 0.0)


def _clip(b: _Builder, x: str, ends: FloatArray) -> str:
    """Clip finite values of x to the range `ends`, (2, p), of each column; NaN and infinite values are unchanged."""
    low, high = ends
    below, above = b.And(b.Less(x, low), b.Greater(x, -np.inf)), b.And(b.Greater(x, high), b.Less(x, np.inf))
    return b.Where(below, low, b.Where(above, high, x))


def _forward(b: _Builder, given: str, fit: PowerFit, treatment: _Treatment) -> str:
    """Build the transform of the input and return its name.

    Parameters
    ----------
    b : _Builder
        The builder.
    given : str
        Name of the input.
    fit : PowerFit
        The fit.
    treatment : _Treatment
        Treatment of values that have no image.
    """
    c, x = _Constants(fit, treatment.constant), given
    if treatment.clips:
        x = _clip(b, x, np.array(fitted_range(fit._table, np.dtype(np.float64))))
    scaled = b.Mul(b.Div(b.Sub(x, c.center), c.divisor), c.sign)
    unit = c.offset + c.a
    if c.mirrored.any():
        below = b.And(b.Less(scaled, 0.0), c.mirrored)
        near = b.Where(below, 0.0, scaled)
    else:
        near = scaled
    d = b.log(b.Div(b.Add(near, c.offset), unit), b.Div(b.Sub(near, c.a), unit))
    psi = b.Mul(b.power(c.m, d), c.growth)
    if c.mirrored.any():
        size = b.Where(below, b.Neg(scaled), 0.0)
        other = b.power(2.0 - c.m, b.log(b.Add(size, 1.0), size))
        psi = b.Where(below, b.Sub(c.zero, b.Mul(other, c.other_growth)), psi)
    z = b.Add(b.Mul(psi, c.slope), c.intercept)
    z = b.Where(c.passes, b.Sub(x, c.start), z) if c.passes.any() else z
    if treatment.infinite == "raise":
        return z
    return b.Where(b.IsInf(given), given if treatment.infinite == "keep" else np.nan, z)


def _inverse(b: _Builder, given: str, fit: PowerFit, treatment: _Treatment) -> str:
    """Build the inverse transform of the input and return its name; values without an inverse become NaN.

    Parameters
    ----------
    b : _Builder
        The builder.
    given : str
        Name of the input.
    fit : PowerFit
        The fit.
    treatment : _Treatment
        Treatment of values that have no inverse.
    """
    c, z = _Constants(fit, treatment.constant), given
    if treatment.clips:
        z = _clip_transformed(b, z, fit)
    psi = b.Div(b.Sub(z, c.intercept), c.slope)
    if c.mirrored.any():
        below = b.And(b.Less(psi, c.zero), c.mirrored)
        near = b.Where(below, 0.0, psi)
    else:
        near = psi
    d = b.log_of_power(c.m, b.Div(near, c.growth))
    unit = c.offset + c.a
    x = b.Where(c.mirrored, b.Add(b.Mul(b.expm1(d), unit), c.a), b.Mul(b.Exp(d), unit))
    if c.mirrored.any():
        size = b.Where(below, b.Div(b.Sub(c.zero, psi), c.other_growth), 0.0)
        other = b.expm1(b.log_of_power(2.0 - c.m, size))
        x = b.Where(below, b.Neg(other), x)
    x = b.Add(b.Mul(b.Mul(x, c.sign), c.divisor), c.center)
    x = b.Where(b.IsInf(x), np.nan, x)
    if treatment.clips:
        x = _clip(b, x, np.array([fit.x_min, fit.x_max]))  # inverses of the ends may round beyond them
    x = b.Where(c.passes, b.Add(z, c.start), x) if c.passes.any() else x
    return b.Where(b.IsInf(given), given, x) if treatment.infinite == "keep" else x


def _clip_transformed(b: _Builder, z: str, fit: PowerFit) -> str:
    """Clip transformed values, including infinite ones, to the transformed range of the data; NaN is unchanged."""
    low, high = transformed_ends(fit._table, fit.standardize)
    is_failed_column = is_failed(fit.status)
    low, high = np.where(is_failed_column, -np.inf, low), np.where(is_failed_column, np.inf, high)
    return b.Where(b.Less(z, low), low, b.Where(b.Greater(z, high), high, z))


# --- skl2onnx -----------------------------------------------------------------------------------------


def _shape(operator: Any) -> None:
    """Set the output type for skl2onnx: the type of the input, or float32 if the input is not floating-point."""
    if len(operator.inputs) != 1:
        raise ValueError("PowerTransformer must have one input, a table; declare one in initial_types")
    given = operator.inputs[0].type
    kind = DoubleTensorType if isinstance(given, DoubleTensorType) else FloatTensorType
    operator.outputs[0].type = kind([given.shape[0], _fit_of(operator.raw_operator).n_features])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of the transformer `operator` to the graph `container`; skl2onnx calls this converter."""

    def add(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        name = output or scope.get_unique_variable_name("powerkern")
        unique = scope.get_unique_operator_name(f"powerkern_{kind}")
        container.add_node(kind, list(inputs), [name], op_version=_version_of(kind), name=unique, **attributes)
        return str(name)

    def constant(values: Any) -> str:
        name = scope.get_unique_variable_name("powerkern_constant")
        kind = TensorProto.BOOL if values.dtype == np.bool_ else TensorProto.DOUBLE
        container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
        return str(name)

    out = operator.outputs[0]
    wide = add("Cast", operator.inputs[0].full_name, to=TensorProto.DOUBLE)
    transformer = operator.raw_operator
    z = _forward(_Builder(add, constant), wide, transformer.power_fit_, _treatment_of(transformer))
    kind = TensorProto.DOUBLE if isinstance(out.type, DoubleTensorType) else TensorProto.FLOAT
    add("Cast", z, output=out.full_name, to=kind)


def _version_of(kind: str) -> int:
    """Return the opset, at most 17, in which an operator last changed."""
    return int(defs.get_schema(kind, max_inclusive_version=_OPSET).since_version)


skl2onnx.update_registered_converter(PowerTransformer, "PowerkernPowerTransformer", _shape, _convert)


suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
