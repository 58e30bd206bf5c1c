"""Error messages abbreviate long arguments: every public function gets wrong arguments of 1,000 values."""

import enum
import importlib
import inspect
import types
import warnings

import numpy as np
import pytest

import powerkern as pk
from powerkern import kernels, stats
from powerkern.completion import fit_ratings
from powerkern.sklearn import UVImputer

MODULES = (
    "powerkern",
    "powerkern.cellwise",
    "powerkern.completion",
    "powerkern.joint",
    "powerkern.kernels",
    "powerkern.location",
    "powerkern.outliers",
    "powerkern.plot",
    "powerkern.regression",
    "powerkern.sketch",
    "powerkern.stats",
)
LONGEST = 400
N = 20
X = np.random.default_rng(0).lognormal(size=(N, 2))
#: Valid values of required arguments, by name; all other required arguments get a vector.
VALID = {
    "X": X, "Y": X[:, 0], "Z": X, "M": X, "chunks": [X], "covariates": X[:, 1:], "fit": pk.fit(X), "chunk": X,
    "sketch": pk.sketch.extend(None, X), "lmbda": 0.5, "lmb": 0.5, "lam": 0.5, "brack": (0.0, 1.0),
    "y_true": np.arange(N) % 2, "y_prob": np.linspace(0.0, 1.0, N),
    "ratings": (np.arange(N), np.arange(N) % 3, X[:, 0]),
    "groups": np.arange(N) % 2, "a": 0.0, "b": 1.0, "func": np.cos, "f": np.cos, "lo": 0.0, "hi": 1.0, "la": 0.0,
}  # fmt: skip
#: Long values that nearly every argument refuses.
LONG = {
    "text": ["some text"] * 1000,
    "text in an array": np.array(["some text"] * 1000),
    "numbers": list(np.arange(1000.0)),
    "an array": np.arange(1000.0) - 500.0,
    "a matrix": np.full((3, 1000), 1.0),
    "one word": "word " * 1000,
    "huge integers": [10**400] * 1000,
    "a dictionary": dict.fromkeys(range(1000), "some text"),
    "objects": np.array([{}] * 1000),
}
#: Values that plots accept, but which take long to draw.
VALID_AND_SLOW = ("numbers", "an array", "a matrix", "huge integers")


def functions():
    for name in MODULES:
        module = importlib.import_module(name)
        for word in getattr(module, "__all__", ()):
            function = getattr(module, word)
            is_enum = isinstance(function, enum.EnumType)  # errors of enumerations come from Python
            if callable(function) and not isinstance(function, types.ModuleType) and not is_enum:
                yield pytest.param(function, id=f"{name}.{word}")


def refusals(function):
    """Yield (name of the parameter, kind of the long argument, error) of each call of `function` that is rejected."""
    parameters = inspect.signature(function).parameters.values()
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    valid = {each.name: VALID.get(each.name, X[:, 0]) for each in named if each.default is each.empty}
    for each in named:
        for kind, value in LONG.items():
            if "plot" in function.__module__ and kind in VALID_AND_SLOW:
                continue
            try:
                function(**{**valid, each.name: value})
            except Exception as error:
                yield each.name, kind, error


@pytest.mark.slow
@pytest.mark.parametrize("function", functions())
def test_messages_are_short(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refused = list(refusals(function))
    long = {
        (name, kind): f"{type(error).__name__}: {error}"[:400]
        for name, kind, error in refused
        if len(str(error)) > LONGEST and not isinstance(error, OSError)  # OSError about a path comes from Python
    }
    assert not long
    assert all(len(str(warning.message)) <= LONGEST for warning in caught)


MODEL = fit_ratings((np.arange(N), np.arange(N) % 3, X[:, 0]))
MOMENTS = kernels.moments.Moments(3.0, 2.0, 1.0)
SHAPES = r"x has shape \(5,\) and lmbda \(3,\)"
#: Calls that pass a value to another library, and the beginning of the error.
RAW = {
    "labels of other shapes": (lambda: MODEL.predict([0, 1], [0, 1, 2]), r"rows has shape \(2,\) and columns \(3,\)"),
    "lambdas of another shape": (lambda: stats.inv_boxcox(X[:5, 0], np.ones(3)), SHAPES),
    "of Yeo-Johnson": (lambda: stats.yeojohnson(X[:5, 0], np.ones(3)), SHAPES),
    "of Box-Cox": (lambda: stats.boxcox(X[:5, 0], np.ones(3)), SHAPES),
    "of boxcox1p": (lambda: stats.boxcox1p(X[:5, 0], np.ones(3)), SHAPES),
    "two moments": (lambda: kernels.chan_merge(MOMENTS, (1.0, 2.0)), r"b must be Moments\(weight, mean, m2\)"),
    "a huge moment": (lambda: kernels.welford_update((10**400, 1, 1), 1.0), "state has integers beyond the range"),
    "a huge value": (lambda: kernels.welford_update(MOMENTS, 10**400), "x has integers beyond the range"),
    "a huge lambda": (lambda: kernels.boxcox_nll([1.0, 2.0], 10**400), "lmbda has integers beyond the range"),
    "huge values": (lambda: kernels.huber_location([10**400, 1]), "x has integers beyond the range"),
    "a huge constant": (lambda: kernels.huber_location([1.0, 2.0], k=10**400), "k has integers beyond the range"),
    "huge logs": (lambda: kernels.logsumexp([10**400, 1]), "logs has integers beyond the range"),
    "huge ends": (lambda: kernels.rectified_boxcox(1.0, 1.0, 1.0, 10**400), "upper has integers beyond the range"),
    "ragged values": (
        lambda: kernels.yeojohnson_nll([[1.0], [2.0, 3.0]], 1.0),
        "x must be a number or numbers in rows",
    ),
    "a huge entry": (lambda: UVImputer().fit([[10**400, 1], [1, 2]]), "X has integers beyond the range"),
}


@pytest.mark.parametrize("case", RAW)
def test_errors_of_other_libraries_do_not_come_through(case):
    call, message = RAW[case]
    with pytest.raises(ValueError, match="^" + message):
        call()


def test_moments_may_be_plain_tuples():
    assert kernels.chan_merge((2.0, 1.5, 0.5), (1, 6, 0)) == (3.0, 3.0, 14.0)
    assert kernels.welford_update((0, 0, 0), 4) == (1.0, 4.0, 0.0)
