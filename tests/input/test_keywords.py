"""Errors about unknown keywords and attributes suggest the intended name."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys

import numpy as np
import pytest

import powerkern as pk
from powerkern._estimators.base import Run

#: Public modules that need no optional library.
MODULES = ("cellwise", "completion", "joint", "location", "outliers", "plot", "regression", "sketch", "stats")


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("method", "'family' or 'estimator'"),
        ("standardise", "'standardize'"),
        ("n_jobs", "'n_threads'"),
        ("weights", "'sample_weight'"),
        ("columns", "'column_names'"),
        ("by", "'groups'"),
        ("lambda_", "'lmbda'"),
    ],
)
def test_unknown_keywords_of_fit(keyword, meant):
    with pytest.raises(
        TypeError, match=rf"^fit\(\) got an unexpected keyword argument '{keyword}'; did you mean {meant}\?$"
    ):
        pk.fit([1.0, 2.0, 3.0], **{keyword: 1})


def test_a_word_that_is_near_none_lists_the_parameters():
    with pytest.raises(TypeError, match=r"'foo'; its parameters are X, family, estimator, standardize, "):
        pk.fit([1.0, 2.0, 3.0], foo=1)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_function_suggests_a_keyword(module):
    namespace = importlib.import_module(f"powerkern.{module}")
    functions = [getattr(namespace, name) for name in namespace.__all__]
    functions = [function for function in functions if inspect.isfunction(function)]
    assert functions
    for function in functions:
        parameters = inspect.signature(function).parameters
        if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            continue
        named = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY] or list(parameters)
        misspelled = named[-1] + "_x"
        required = {name: 1.0 for name, each in parameters.items() if each.default is each.empty}
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{misspelled}'; "):
            function(**required, **{misspelled: 1})
        assert pickle.loads(pickle.dumps(function)) is function


def test_unknown_constants_of_location_scale_suggest_a_name():
    from powerkern.location import location_scale
    from powerkern.outliers import zscore

    with pytest.raises(TypeError, match=r"method 'mean-sd' has no constant 'n_jobs'; did you mean 'n_threads'\?"):
        zscore([1.0, 2.0, 4.0], n_jobs=1)
    with pytest.raises(TypeError, match=r"method 'huber' has no constant 'c'; it has: k"):
        location_scale([1.0, 2.0, 4.0], "huber", c=1.0)


def test_errors_from_inside_are_as_they_are():
    with pytest.raises(TypeError) as caught:
        pk.fit(["a", "b"])
    assert "did you mean" not in str(caught.value)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'X'$"):
        pk.fit()


def list_functions():
    """Return all functions in the loaded modules of the package, including methods and private functions."""
    for name in MODULES:
        importlib.import_module(f"powerkern.{name}")
    found = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("powerkern."):
            continue
        for value in list(vars(module).values()):
            members = vars(value).values() if inspect.isclass(value) and value.__module__ == name else ()
            for each in (value, *members):
                function = inspect.unwrap(getattr(each, "__func__", each)) if callable(each) else each
                if inspect.isfunction(function) and function.__module__ == name:
                    found[name, function.__qualname__] = function
    return found


def test_nothing_shows_its_progress_unless_asked():
    """The default of `progress` is False in every function, public or private."""
    defaults = {
        place: {name: each.default for name, each in inspect.signature(function).parameters.items()}
        for place, function in list_functions().items()
        if "progress" in (*function.__code__.co_varnames, *(function.__kwdefaults__ or ()))
    }
    shown = {place: each["progress"] for place, each in defaults.items() if "progress" in each}
    assert len(shown) > 15
    assert set(shown.values()) == {False, inspect.Parameter.empty}, shown
    assert not Run(1).progress


# --- attributes of packages ---------------------------------------------------------------------------


@pytest.mark.slow
def test_public_modules_are_attributes_without_an_import():
    code = (
        "import powerkern as pk, sys; assert 'powerkern.stats' not in sys.modules and 'numpy' not in sys.modules;"
        "print(pk.stats.boxcox([1., 2.], 0.)[0], pk.plot.__name__, pk.outliers.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.0", "powerkern.plot", "powerkern.outliers"]


def test_dir_of_the_package_is_its_public_names():
    modules = {each.name for each in pkgutil.iter_modules(pk.__path__) if not each.name.startswith("_")}
    assert set(dir(pk)) == modules | set(pk.__all__)


def test_an_attribute_that_is_misspelled():
    with pytest.raises(
        AttributeError, match=r"^module 'powerkern' has no attribute 'sklern'; did you mean 'sklearn'\?$"
    ):
        _ = pk.sklern


def test_a_module_whose_library_is_missing_is_an_attribute_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "powerkern.onnx", None)  # makes its import fail
    monkeypatch.delattr(pk, "onnx", raising=False)
    with pytest.raises(AttributeError, match=r"^powerkern.onnx cannot be imported: "):
        _ = pk.onnx
    assert not hasattr(pk, "onnx")


@pytest.mark.parametrize("name", ["sklearn", "cellwise", "outliers", "completion"])
def test_dir_shows_public_names(name):
    namespace = importlib.import_module(f"powerkern.{name}")
    assert dir(namespace) == sorted(namespace.__all__)
    assert any(inspect.isclass(getattr(namespace, each)) for each in dir(namespace))
    with pytest.raises(AttributeError, match=f"module 'powerkern.{name}' has no attribute 'Foo'"):
        _ = namespace.Foo


def test_the_wrapper_changes_neither_result_nor_signature():
    assert list(inspect.signature(pk.fit).parameters)[:3] == ["X", "family", "estimator"]
    x = np.array([1.0, 2.0, 5.0])
    assert pk.fit(x).lmbda[0] == inspect.unwrap(pk.fit)(x).lmbda[0]


def test_classes_and_their_methods_suggest_a_keyword():
    fit = pk.fit(np.arange(1.0, 9.0))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'cutof'.*; did you mean 'cutoff'\?"):
        pk.RewML(cutof=0.9)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'n_jobs'.*; did you mean 'n_threads'\?"):
        fit.transform(np.arange(1.0, 9.0), n_jobs=2)
    assert inspect.signature(pk.RewML).parameters["cutoff"].default == pk.RewML().cutoff
    assert pickle.loads(pickle.dumps(pk.RewML(cutoff=0.9))) == pk.RewML(cutoff=0.9)


#: A line of numpydoc that ends with a default that Python can read.
DEFAULT = re.compile(
    r"(\w+(?:, \w+)*) : .*\bdefault (\"[^\"]*\"|-?\d[\d.]*(?:e-?\d+)?|True|False|\([^)]*\))(?=[,;)]|$)"
)


def public_callables():
    """Yield the functions, classes and methods that modules list in `__all__`."""
    for module in ("", *MODULES, "sklearn", "federated", "dask", "xarray", "onnx"):
        try:
            namespace = importlib.import_module(f"powerkern.{module}".rstrip("."))
        except ImportError:  # an optional library is missing
            continue
        for name in namespace.__all__:
            each = getattr(namespace, name)
            yield name, each
            if inspect.isclass(each):
                methods = (member for member in dir(each) if not member.startswith("_"))
                yield from ((f"{name}.{member}", getattr(each, member)) for member in methods)


def test_defaults_are_the_documented_ones():
    checked = set()
    for name, each in public_callables():
        if not callable(each) or each.__doc__ is None:
            continue
        try:
            parameters = inspect.signature(each).parameters
        except (TypeError, ValueError):  # types
            continue
        for names, text in filter(None, (_default_in(line) for line in inspect.getdoc(each).splitlines())):
            for argument in names.split(", "):
                default = parameters[argument].default if argument in parameters else None
                if default is not None:  # None stands for a default that depends on other arguments
                    assert default == ast.literal_eval(text), f"{name}: {argument} = {default!r}"
                    checked.add((name, argument))
    assert len(checked) > 100


def _default_in(line):
    match = DEFAULT.match(line)
    return match and (match[1], match[2])
