"""The public interface as a table: every function and method, with arguments made from the names in its signature.

A new function is covered as soon as it is in the ``__all__`` of its module. A new argument name needs a line in
`ARGUMENTS`; without it, ``tests/borders`` fails.
"""

from __future__ import annotations

import importlib
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

N, P = 60, 4
MODULES = (
    "powerkern",
    "powerkern.stats",
    "powerkern.regression",
    "powerkern.joint",
    "powerkern.location",
    "powerkern.cellwise",
    "powerkern.outliers",
    "powerkern.completion",
    "powerkern.sketch",
    "powerkern.onnx",
)
#: Public modules whose functions are not in the table, each with the reason.
OTHER_MODULES = {
    "dask": "takes collections of Dask: tests/test_dask.py",
    "federated": "exchanges messages: tests/federated",
    "kernels": "takes vectors only: tests/kernels/test_public.py",
    "plot": "draws: tests/plot/test_all.py",
    "ray": "takes data sets of Ray: tests/test_ray.py",
    "results": "has types only",
    "sklearn": "has classes only: the table of estimators in tests/borders/test_table.py",
    "spark": "takes data frames of Spark: tests/test_spark.py",
    "xarray": "takes labelled arrays: tests/test_xarray.py",
}
#: Public names that take no data, or data of a kind of their own, each with the reason.
WITHOUT_DATA = {
    "load": "reads a file",
    "to_onnx": "takes a fit",
    "merge": "takes two summaries",
    "finish": "takes a summary",
    "ks_distance": "sorts one sample: tests/outliers",
}
#: Methods that take no data, or write files, each with the reason.
METHODS_WITHOUT_DATA = {
    "save": "writes a file",
    "to_json": "writes text",
    "from_json": "reads text",
    "to_frame": "shows results",
    "neighbors": "takes a column",
    "score_at": "takes a probability",
    "get": "is a mapping's",
    "items": "is a mapping's",
    "keys": "is a mapping's",
    "values": "is a mapping's",
    "count": "is a tuple's",
    "index": "is a tuple's",
    "without_data": "drops the data",
}


@dataclass(frozen=True)
class Inputs:
    """Data for every argument, all converted to one kind of container.

    Attributes
    ----------
    matrix : callable
        Converts an (n, p) array of numbers.
    vector : callable
        Converts an (n,) array of numbers: weights, probabilities.
    labels : callable
        Converts an (n,) array of group labels or identifiers.
    """

    matrix: Callable[[Any], Any]
    vector: Callable[[Any], Any]
    labels: Callable[[Any], Any]

    def argument(self, name: str, owner: str) -> Any:
        """Make the argument called `name` of the function or method called `owner`."""
        special = ARGUMENTS.get(f"{owner}({name})")
        return (special or ARGUMENTS[name])(self)


def draw(seed: int, *shape: int) -> Any:
    """Draw positive, skewed values in an array of this shape."""
    return np.random.default_rng(seed).lognormal(size=shape)


X = draw(1, N, P)
COVARIATES = np.random.default_rng(2).normal(size=(N, 2))
WEIGHT = np.random.default_rng(3).integers(1, 4, size=N).astype(float)
GROUPS = np.random.default_rng(4).permutation(np.repeat([0, 1, 2], N // 3))
SHARE = np.random.default_rng(5).uniform(0.05, 0.95, size=N)
TRUTH = (np.random.default_rng(6).uniform(size=N) < SHARE).astype(int)
USERS, ITEMS = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)

#: How to make an argument from its name, or from "function(name)" where the name alone does not tell.
ARGUMENTS: dict[str, Callable[[Inputs], Any]] = {
    "X": lambda d: d.matrix(X),
    "Y": lambda d: d.matrix(X),
    "M": lambda d: d.matrix(X),
    "Z": lambda d: d.matrix(np.clip(np.log(X), -1.0, 1.0)),
    "x": lambda d: d.vector(X[:, 0]),
    "data": lambda d: d.vector(X[:, 0]),
    "y": lambda d: d.vector(np.log(X[:, 0])),
    "scores": lambda d: d.matrix(X),
    "P": lambda d: d.matrix(np.column_stack([SHARE, SHARE**2, np.sqrt(SHARE)])),
    "covariates": lambda d: d.matrix(COVARIATES),
    "sample_weight": lambda d: d.vector(WEIGHT),
    "weight": lambda d: d.vector(WEIGHT),
    "groups": lambda d: d.labels(GROUPS),
    "y_true": lambda d: d.labels(TRUTH),
    "y_prob": lambda d: d.vector(SHARE),
    "chunk": lambda d: d.matrix(X),
    "chunks": lambda d: [d.matrix(X)],
    "total": lambda d: None,
    "error": lambda d: d.vector(SHARE),
    "errors": lambda d: d.matrix(X),
    "reference": lambda d: d.vector(2.0 * SHARE),
    "grid": lambda d: importlib.import_module("powerkern.sketch").range_of(X).grid(),
    "ratings": lambda d: (d.labels(USERS), d.labels(ITEMS), d.vector(X[:, 0])),
    "rows": lambda d: d.labels(USERS),
    "columns": lambda d: d.labels(ITEMS),
    "rank": lambda d: 2,
    "decompositions": lambda d: [
        importlib.import_module("powerkern.completion").uv_decompose(X, 2, **_seed("uv_decompose"))
    ],
    "fit_ratings(rank)": lambda d: 1,
    "rng": lambda d: 0,
    "random_state": lambda d: 0,
    "lmb": lambda d: 0.5,
    "la": lambda d: -1.0,
    "lb": lambda d: 2.0,
    "lmbda": lambda d: 0.5,
    "lmbda0": lambda d: 0.5,
    "lmbdas": lambda d: np.array([0.0, 0.5, 1.0]),
    "limit": lambda d: 0.5,
    "limits": lambda d: (0.5, 3.0),
    "below": lambda d: d.matrix(X < 0.5),
    "above": lambda d: d.matrix(X > 3.0),
    "between": lambda d: tuple(d.matrix(np.where(X < 0.5, end, np.nan)) for end in (0.2, 0.5)),
    "mean": lambda d: np.zeros(P),
    "sd": lambda d: np.ones(P),
    "quantile": lambda d: 0.5,
    "GroupedFit.inverse_mean(mean)": lambda d: np.zeros((N, P)),
    "GroupedFit.inverse_mean(sd)": lambda d: np.ones((N, P)),
    "WrappedPCA.inverse_transform(scores)": lambda d: d.matrix(np.log(X[:, :2])),
    "fit_chunks(sample_weight)": lambda d: [d.vector(WEIGHT)],
    **{f"fit_chunks({name})": lambda d, name=name: [d.argument(name, "fit")] for name in ("below", "above")},
    "fit_chunks(between)": lambda d: tuple([end] for end in d.argument("between", "fit")),
    "location_chunks(sample_weight)": lambda d: [d.vector(WEIGHT)],
    "RatingModel.fold_in(columns)": lambda d: d.labels(np.array([0, 1])),
    "RatingModel.fold_in(values)": lambda d: d.vector(np.array([1.0, 2.0])),
    "RatingModel.fold_in(weight)": lambda d: d.vector(np.array([1.0, 2.0])),
}
#: Optional arguments that are passed, too: those with one value per row, and seeds.
GIVEN_IF_OPTIONAL = ("sample_weight", "weight", "groups", "covariates", "rng", "random_state")
_CELLS = ("below", "above", "between", "limits")
#: Optional arguments, by function or method of "PowerFit, marks", for one additional call with each.
VARIANTS = {
    **dict.fromkeys(("fit", "fit_chunks", "range_of", "PowerFit.expected", "PowerFit.draw"), _CELLS),
}
#: Optional arguments with one value a column, or labels of columns: tests/input/test_alignment.py.
BY_COLUMN = frozenset(
    ("bounds", "center", "column_names", "contamination", "cov", "lmbda", "loc", "scale", "shift", "trim")
)
#: Names of optional data arguments of methods, for additional calls.
OPTIONAL_DATA = ("X", "Y", "sample_weight")
#: Kinds of fits whose methods need the fitted data, with the marks of their cells.
CENSORED = ("PowerFit, limits", "PowerFit, marks")
#: Methods that fits of some kinds refuse.
REFUSED = {(kind, name) for kind in CENSORED for name in ("central_normality", "normality")} | {
    ("PowerFit, robust", name) for name in ("lr_test", "rounded", "rounded_fit")
}
#: Optional arguments without data.
OPTIONS_WITHOUT_DATA = frozenset(
    (
        *("N", "alpha", "axis", "b", "brack", "c", "criterion", "cutoff", "damping", "ddof", "dropna", "estimator"),
        *("family", "formula", "include_self", "infinite", "init", "intercept", "keepdims", "kind", "level"),
        *("max_discrete", "max_epochs", "max_missing", "method", "min_correlation", "min_scale"),
        *("missing", "n_bins", "n_components", "n_neighbors", "n_starts", "n_threads", "nan_policy"),
        *("non_numeric", "normalize", "on_failure", "optimizer", "order", "origin", "out", "out_of_range"),
        *("patience", "plot", "progress", "quantile", "rank", "ranks", "replicates", "ridge", "sample", "search"),
        *("season_length", "shrink", "shrinkage", "standardize", "standardized", "strategy", "stratum"),
        *("tol", "unknown", "validation_fraction", "ymax"),
    )
)
#: Optional arguments that are given to some functions only.
LEFT_OUT = {
    **{f"extend({name})": "the sketch of the first rows decides on limits" for name in _CELLS},
    **{
        f"summarize_chunk({name})": "the grid decides on limits: tests/sketch" for name in ("below", "above", "between")
    },
    "fit(groups)": "fit with groups is an entry of its own",
    "fit_chunks(groups)": "names columns, not rows: tests/sketch/test_groups.py",
    "boxcox_guerrero(groups)": "one value a column",
    "fit_ratings(weight)": "is one value a rating, as the values are",
    "fit_joint(covariates)": "is slow; fit_regression has them",
    "brier_score(sample_weight)": "has none",
    "RegressionFit.fitted_values(covariates)": "given with the fit",
    "RegressionFit.residuals(covariates)": "given with Y",
    "JointFit.confint(covariates)": "the fit has none",
    "JointFit.lr_test(covariates)": "the fit has none",
    "JointFit.mahalanobis(covariates)": "the fit has none",
    "JointFit.summary(covariates)": "the fit has none",
    "RatingModel.fold_in(weight)": "is one value a value",
}


@dataclass(frozen=True)
class Entry:
    """A public function, or a method of a result.

    Attributes
    ----------
    name : str
        Its name, "Class.method" for a method.
    make : callable
        Calls it with the `Inputs` for its arguments.
    arguments : tuple of str
        The names of its arguments.
    function : callable
        The function itself.
    """

    name: str
    make: Callable[[Inputs], Any]
    arguments: tuple[str, ...]
    function: Callable[..., Any]

    def make_arguments(self, inputs: Inputs) -> dict[str, Any]:
        """Make the arguments of a call."""
        return {name: inputs.argument(name, self.name.split(",")[0]) for name in self.arguments}


def arguments_of(owner: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments to pass to a function: all required ones, and some optional ones.

    Optional arguments are passed if GIVEN_IF_OPTIONAL names them, unless they are in LEFT_OUT. `owner` is the name of
    the function in the table.
    """
    given = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty or (name in GIVEN_IF_OPTIONAL and f"{owner}({name})" not in LEFT_OUT):
            given.append(name)
    return tuple(given)


def call(owner: str, function: Callable[..., Any], names: tuple[str, ...], inputs: Inputs, **more: Any) -> Any:
    """Call a function with the inputs of these names, without its user warnings.

    Parameters
    ----------
    owner : str
        Name of the function in the table.
    function : callable
        The function.
    names : tuple of str
        Names of the arguments to pass.
    inputs : Inputs
        Source of the arguments.
    **more
        Further arguments.
    """
    given = {name: inputs.argument(name, owner) for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(**given, **more)


def _entry(owner: str, function: Callable[..., Any], *variant: str) -> Entry:
    names = (*arguments_of(owner, function), *variant)
    label = ", ".join((owner, *variant))
    return Entry(label, lambda d: call(owner, function, names, d), names, function)


def public_functions() -> Iterator[Entry]:
    """List every public function that takes data."""
    for module in MODULES:
        namespace = importlib.import_module(module)
        for name in namespace.__all__:
            value = getattr(namespace, name)
            if isinstance(value, types.FunctionType) and name not in WITHOUT_DATA:
                yield _entry(name, value)
                for argument in VARIANTS.get(name, ()):
                    yield _entry(name, value, argument)


def fits() -> dict[str, Callable[[Inputs], Any]]:
    """Return, for each kind of result with methods, a function that computes a result of this kind from `Inputs`."""
    pk, get = importlib.import_module("powerkern"), importlib.import_module
    return {
        "PowerFit": lambda d: call("fit", pk.fit, ("X", "sample_weight"), d),
        "PowerFit, robust": lambda d: call("fit", pk.fit, ("X", "sample_weight"), d, estimator="robust"),
        "PowerFit, Box-Cox": lambda d: call("fit", pk.fit, ("X",), d, family="box-cox"),
        "PowerFit, limits": lambda d: call("fit", pk.fit, ("X", "limits"), d, family="box-cox"),
        "PowerFit, marks": lambda d: call("fit", pk.fit, ("X", "below"), d, family="box-cox"),
        "GroupedFit": lambda d: call("fit", pk.fit, ("X", "sample_weight", "groups"), d),
        "RegressionFit": lambda d: call(
            "fit_regression", get("powerkern.regression").fit_regression, ("Y", "covariates", "sample_weight"), d
        ),
        "JointFit": lambda d: call("fit_joint", get("powerkern.joint").fit_joint, ("X", "sample_weight"), d),
        "ScoreScaling": lambda d: call("fit_scaling", get("powerkern.outliers").fit_scaling, ("scores",), d),
        "DDCFit": lambda d: call("ddc", get("powerkern.cellwise").ddc, ("X",), d),
        "WrappedPCA": lambda d: call("wrapped_pca", get("powerkern.cellwise").wrapped_pca, ("X",), d, n_components=2),
        "Wrapped": lambda d: call("wrap", get("powerkern.cellwise").wrap, ("X",), d),
        "UVDecomposition": lambda d: call(
            "uv_decompose", get("powerkern.completion").uv_decompose, ("M", "rank"), d, **_seed("uv_decompose")
        ),
        "RatingModel": lambda d: call(
            "fit_ratings", get("powerkern.completion").fit_ratings, ("ratings", "rank"), d, **_seed("fit_ratings")
        ),
    }


def _seed(name: str) -> dict[str, int]:
    """Return the seed as a keyword argument for the function `name` of `powerkern.completion`.

    The dict is empty if the function draws no random numbers.
    """
    function = getattr(importlib.import_module("powerkern.completion"), name)
    return {key: 0 for key in ("rng", "random_state") if key in inspect.signature(function).parameters}


def methods(kind: str, result: Any) -> list[tuple[str, tuple[str, ...]]]:
    """List the public methods of a result, each with the names of its required arguments; `kind` is a key of `fits`."""
    found = []
    for name in dir(type(result)):
        static = inspect.getattr_static(type(result), name)
        if name.startswith("_") or not isinstance(static, types.FunctionType) or name in METHODS_WITHOUT_DATA:
            continue
        signature = inspect.signature(getattr(result, name)).parameters
        required = tuple(
            key
            for key, parameter in signature.items()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        )
        if (kind, name) in REFUSED:
            continue
        required += tuple(key for key in ("groups", "rng") if key in signature and key not in required)
        found.append((name, required))
    return found


def methods_with_data(kind: str, result: Any) -> list[tuple[str, tuple[str, ...]]]:
    """List the public methods that accept optional data, each with the names of all arguments to pass.

    `result` is a result, and `kind` its key in `fits`.
    """
    found = []
    for name, required in methods(kind, result):
        if kind in CENSORED:
            given = VARIANTS.get(f"PowerFit.{name}", ()) if kind == "PowerFit, marks" else ()
            found += [(name, (*required, argument)) for argument in given]
            continue
        signature = inspect.signature(getattr(result, name)).parameters
        more = tuple(key for key in OPTIONAL_DATA if key in signature and key not in required)
        if "Y" in more:
            more += ("covariates",)
        if more:
            found.append((name, (*required, *more)))
    return found


def unknown_arguments(owner: str, function: Callable[..., Any], given: tuple[str, ...]) -> list[str]:
    """List the optional arguments of a function, as "function(argument)", that the table does not mention.

    Parameters
    ----------
    owner : str
        Name of the function in the table.
    function : callable
        The function.
    given : tuple of str
        Names of the arguments that the table gives.
    """
    owner = owner.split(",")[0]
    known = {*given, *VARIANTS.get(owner, ()), *BY_COLUMN, *OPTIONS_WITHOUT_DATA}
    parameters = inspect.signature(function).parameters.values()
    unknown = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD and each.name not in known]
    return [f"{owner}({name})" for name in unknown if name != "self" and f"{owner}({name})" not in LEFT_OUT]


def call_method(kind: str, result: Any, method: str, required: tuple[str, ...], inputs: Inputs) -> Any:
    """Call a method of a result with the inputs that it requires.

    Parameters
    ----------
    kind : str
        Kind of the result; see `fits`.
    result : object
        The result.
    method : str
        Name of the method.
    required : tuple of str
        Names of its required arguments.
    inputs : Inputs
        Source of the arguments.
    """
    owner = f"{kind.split(',')[0]}.{method}"
    return call(owner, getattr(result, method), required, inputs)


def numbers(value: Any) -> list[Any]:
    """Flatten a result of any type to a list of float arrays, in a fixed order; skip strings, functions and None."""
    if value is None or isinstance(value, str | bytes | types.FunctionType):
        return []
    if isinstance(value, dict):
        return [part for key in value for part in numbers(value[key])]
    if isinstance(value, tuple | list):
        return [part for item in value for part in numbers(item)]
    if hasattr(value, "lmbda"):
        results = [getattr(value, name, None) for name in ("lmbda", "loc", "scale", "mu", "correlation")]
        return [np.asarray(result, float) for result in results if result is not None]
    if hasattr(value, "to_numpy"):
        return [np.asarray(value.to_numpy(), float)]
    if isinstance(value, np.ma.MaskedArray):
        return [np.asarray(value.filled(np.nan), float)]
    try:
        return [np.asarray(value, float)]
    except (TypeError, ValueError):
        parts = vars(value) if hasattr(value, "__dict__") else {}
        return [part for key in sorted(parts) if not key.startswith("_") for part in numbers(parts[key])]


def plain() -> Inputs:
    """Return `Inputs` whose data are ordinary arrays."""
    return Inputs(np.array, np.array, np.array)
