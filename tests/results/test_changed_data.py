"""If the fitted data are changed in place, every result of the fit stays the same or raises an error."""

import contextlib
import copy
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fits import kernel_rows

import powerkern as pk
from powerkern._engine.fingerprints import fingerprint_columns
from powerkern._results.fitted_data import COPIED_BYTES
from powerkern._results.summary import Summary
from powerkern.joint import fit_joint
from powerkern.kernels.fingerprint import KEYS
from powerkern.regression import fit_regression

CHANGED = "changed after the fit"
NAMES = ["a", "b", "c"]
SMALL, LARGE = 100, 6000
#: Arguments that methods require.
ARGUMENTS = {"lmbdas": [0.0, 0.5], "lmbda0": 0.5}


def values_of(n, p=3):
    return np.random.default_rng(n).lognormal(sigma=0.5, size=(n, p))


def figures(result):
    """Return a list of the arrays in a result: kernel rows of a fit, entries of a summary, or elements of a tuple."""
    if isinstance(result, Summary):
        return [np.asarray(entry) for entry in result.to_dict().values()]
    if isinstance(result, pk.PowerFit):
        return [kernel_rows(result)]
    if isinstance(result, tuple):
        return [figure for part in result for figure in figures(part)]
    return [np.asarray(result)]


def attributes_of(fit):
    """Return the public attributes of a fit, without those that its estimator does not have."""
    found = {}
    for name in sorted(dir(fit)):
        if not name.startswith("_"):
            with contextlib.suppress(ValueError):
                found[name] = getattr(fit, name)
    return found


def methods_of(fit):
    """Return, keyed by name, functions of no argument that call the methods of a fit on its stored data."""
    calls = {}
    for name, method in attributes_of(fit).items():
        if not inspect.ismethod(method):
            continue
        parameters = inspect.signature(method).parameters
        required = [each.name for each in parameters.values() if each.default is each.empty and each.kind < 2]
        about_data = {"X", "covariates", "Y", "n_threads"} & set(parameters)
        if about_data and set(required) <= set(ARGUMENTS):
            calls[name] = lambda method=method, required=required: method(**{arg: ARGUMENTS[arg] for arg in required})
    return calls


def answers(fit):
    """Return the result of every method, or the text of its ValueError."""
    found = {}
    for name, call in methods_of(fit).items():
        try:
            found[name] = figures(call())
        except ValueError as error:
            found[name] = str(error)
    return found


def assert_same_or_refused(before, after, may_refuse):
    """Check that each method answers as before, or raises the error about changed data; return the names of the latter.

    `before` and `after` are results of `answers`. Without `may_refuse`, no method may raise.
    """
    refused = []
    for name, was in before.items():
        now = after[name]
        if isinstance(now, str) and now != was:
            assert CHANGED in now, (name, now)
            refused.append(name)
        else:
            for one, other in zip(was, now, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=name)
    assert may_refuse or not refused
    return refused


FITS = {
    "box-cox": lambda X: pk.fit(X, "box-cox"),
    "best": lambda X: pk.fit(X, "best"),
    "robust": lambda X: pk.fit(X, "box-cox", "rewml"),
    "lmbda=1": lambda X: pk.fit(X, lmbda=1.0),
    "shift": lambda X: pk.fit(X, "box-cox", shift=1.0),
    "prestandardized": lambda X: pk.fit(X, estimator=pk.ML(prestandardize="mad")),
    "regression": lambda X: fit_regression(X, np.linspace(0.0, 1.0, len(X))),
    "joint": lambda X: fit_joint(X, family="box-cox"),
    "group": lambda X: pk.fit(X, groups=np.repeat([1, 2], len(X) // 2))[2],
    "limits": lambda X: pk.fit(X, "box-cox", limits=(0.7, 2.0)),
    "marks": lambda X: pk.fit(X, "box-cox", below=np.asarray(X) < 0.7),
    "between": lambda X: pk.fit(
        X, "box-cox", between=[np.where(np.asarray(X) < 0.7, end, np.nan) for end in (0.3, 0.8)]
    ),
    "group, limits": lambda X: pk.fit(X, groups=np.repeat([1, 2], len(X) // 2), limits=(0.7, 2.0))[2],
}


def test_all_methods_are_called():
    assert {"confint", "lr_test", "profile", "objective_curve", "normality", "central_normality", "summary"} <= set(
        methods_of(FITS["box-cox"](values_of(SMALL)))
    )
    assert {"confint", "lr_test", "profile", "residuals", "fitted_values", "summary"} <= set(
        methods_of(FITS["regression"](values_of(SMALL)))
    )
    assert {"confint", "lr_test", "summary"} <= set(methods_of(FITS["joint"](values_of(SMALL))))


#: Fits that hold copies of values: the rows of a group, copied when its fit was selected, and censored cells, whose
#: numbers are replaced by an end of their interval.
WITH_OWN_VALUES = ("group", "limits", "between", "group, limits")


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_arrays_changed_in_place_are_detected_until_restored(kind, n):
    X = values_of(n)
    assert (X.nbytes > COPIED_BYTES) == (n == LARGE)
    fit = FITS[kind](X)
    before = answers(fit)
    X[n - 1, 1] *= 1.0 + 1e-15  # by an ulp or two
    refused = assert_same_or_refused(before, answers(fit), may_refuse=n == LARGE)
    if n == LARGE and kind not in WITH_OWN_VALUES:
        assert refused
        assert all("column 1" in answers(fit)[name] for name in refused)
        # the original values are restored
        X[:] = values_of(n)
        assert_same_or_refused(before, answers(fit), may_refuse=False)


def changed_frame(X):
    X.loc[:, ["a", "c"]] = np.log(X[["a", "c"]])
    X.iloc[3, 1] = 9.0


@pytest.mark.parametrize("kind", FITS)
def test_frames_changed_in_place_give_the_right_answer(kind):
    X = pd.DataFrame(values_of(LARGE), columns=NAMES)
    fit = FITS[kind](X)
    before = answers(fit)
    changed_frame(X)
    assert_same_or_refused(before, answers(fit), may_refuse=False)


def test_a_frame_that_its_own_fit_transforms():
    X = pd.DataFrame(values_of(LARGE), columns=NAMES)
    original = X.copy()
    fit = pk.fit(X, "box-cox")
    X.loc[:, NAMES] = fit.transform(X)
    right = pk.fit(original, "box-cox").summary().to_frame()
    pd.testing.assert_frame_equal(fit.summary().to_frame(), right)


def memory_map(X, tmp_path):
    mapped = np.memmap(tmp_path / "x", dtype=X.dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped, mapped


def of_numpy(make):
    def shared(X, tmp_path):
        return make(X), X

    return shared


CONTAINERS = {
    "fortran": lambda X, _: (np.asfortranarray(X),) * 2,
    "strided": lambda X, _: (np.repeat(X, 2, axis=1)[::-1, ::2],) * 2,
    "float32": lambda X, _: (X.astype(np.float32),) * 2,
    "big-endian": lambda X, _: (X.astype(">f8"),) * 2,
    "int64": lambda X, _: ((1000 * X).astype(np.int64),) * 2,
    "memmap": memory_map,
    "masked": of_numpy(lambda X: np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))),
    "pandas without a copy": of_numpy(lambda X: pd.DataFrame(X, columns=NAMES, copy=False)),
    "polars from NumPy": of_numpy(lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True)))),
    "arrow from NumPy": of_numpy(lambda X: pa.table(dict(zip(NAMES, X.T, strict=True)))),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_changes_of_shared_memory_are_detected(container, tmp_path):
    given, memory = CONTAINERS[container](np.asfortranarray(values_of(2 * LARGE)), tmp_path)
    fit = pk.fit(given, "box-cox")
    before = answers(fit)
    memory[17, 2] += 1
    assert_same_or_refused(before, answers(fit), may_refuse=True)


def test_a_changed_polars_frame_does_not_change_results():
    X = pl.DataFrame(values_of(LARGE), schema=NAMES)
    fit = pk.fit(X, "box-cox")
    before = answers(fit)
    X[0, "a"] = 50.0
    assert_same_or_refused(before, answers(fit), may_refuse=False)


@pytest.mark.parametrize("kind", ["mle", "rewml", "regression", "joint", "group"])
@pytest.mark.parametrize("n", [SMALL, 20_000])
def test_weights_changed_in_place(kind, n):
    X, weight = values_of(n), np.random.default_rng(1).uniform(0.5, 2.0, size=n)
    if kind == "regression":
        fit = fit_regression(X, np.linspace(0.0, 1.0, n), sample_weight=weight)
    elif kind == "joint":
        fit = fit_joint(X, sample_weight=weight)
    elif kind == "group":
        fit = pk.fit(X, groups=np.repeat([1, 2], n // 2), sample_weight=weight)[2]
    else:
        fit = pk.fit(X, estimator=kind, sample_weight=weight)
    before = answers(fit)
    weight[-1] *= 2.0
    refused = assert_same_or_refused(before, answers(fit), may_refuse=n > SMALL)
    assert bool(refused) == (n > SMALL and kind != "group")
    assert all(answers(fit)[name].startswith("sample_weight: ") for name in refused)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [SMALL, 20_000])
def test_covariates_changed_in_place(intercept, n):
    Y, x = values_of(n), np.random.default_rng(0).uniform(1.0, 2.0, size=(n, 2))
    fit = fit_regression(Y, x, intercept=intercept)
    before = answers(fit)
    x[:] = 1.0
    assert_same_or_refused(before, answers(fit), may_refuse=False)


def test_a_change_affects_only_the_group_of_its_row():
    X, groups = values_of(LARGE), np.arange(LARGE) % 4
    fit = pk.fit(X, groups=groups)
    before = {label: fit[label].profile(0.5) for label in fit}
    X[4, 1] += 1.0  # row 4 belongs to group 0
    groups[:] = 7  # the labels of the rows are no longer needed
    with pytest.raises(ValueError, match=rf"X, column 1: {CHANGED}"):
        fit[0].profile(0.5)
    for label in (1, 2, 3):
        np.testing.assert_array_equal(fit[label].profile(0.5), before[label])


def test_a_change_affects_only_its_column():
    X = values_of(LARGE)
    fit = pk.fit(X, column_names=NAMES)
    before = fit["a"].profile(0.5)
    X[:, 1] += 1.0
    np.testing.assert_array_equal(fit["a"].profile(0.5), before)
    np.testing.assert_array_equal(fit[["c", "a"]]["a"].profile(0.5), before)
    for part in (fit, fit[1:], fit["b"]):
        with pytest.raises(ValueError, match=rf"X, column \d \('b'\): {CHANGED}.*; pass the original data as X"):
            part.profile(0.5)


def test_exchanged_rows_are_detected_as_a_change():
    """Weighted rows exchange their values. Position-weighted sums stay the same, but the change is detected."""
    X = np.repeat([[1.0], [2.0], [2.0], [1.0]], LARGE, axis=0)
    fit = pk.fit(X, sample_weight=np.arange(1.0, len(X) + 1.0))
    X[:] = 3.0 - X
    with pytest.raises(ValueError, match=CHANGED):
        fit.profile(0.5)


def test_a_change_of_all_signs_is_detected():
    X = np.random.default_rng(0).normal(size=(50_000, 1))
    fit = pk.fit(X, lmbda=1.0)
    X *= -1.0
    with pytest.raises(ValueError, match=CHANGED):
        fit.profile(0.5)


@pytest.mark.parametrize("clone", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", FITS)
def test_copies_have_no_data(kind, clone):
    X = values_of(SMALL)
    again = clone(FITS[kind](X))
    with pytest.raises(ValueError, match=r"no longer has its data|leave out X, or, if the fit was copied"):
        again.confint()


@pytest.mark.parametrize(
    "name", ["limits", "bounds", "shift", "lmbda", "below"], ids=lambda name: f"the argument {name}"
)
def test_arguments_changed_in_place(name):
    X, low, high = values_of(SMALL), np.full(3, 0.3), np.full(3, 2.0)
    given = {"limits": (low, high), "bounds": (low, high), "shift": low, "lmbda": low, "below": X < 0.7}
    fit = pk.fit(X, "box-cox", **{name: given[name]})
    before, text, images = answers(fit), fit.to_json(), fit.transform(X)
    expected = fit.expected(X) if name in ("limits", "below") else None
    for array in given[name] if isinstance(given[name], tuple) else (given[name],):
        array[:] = 0 if array.dtype == bool else 7.0
    assert_same_or_refused(before, answers(fit), may_refuse=False)
    assert fit.to_json() == text
    np.testing.assert_array_equal(fit.transform(X), images)
    if expected is not None:
        np.testing.assert_array_equal(fit.expected(X), expected)


# --- fingerprints -------------------------------------------------------------------------------------


def plain_fingerprint(x):
    """Compute the fingerprint by its definition, in Python's integers."""
    golden, total, mask = 0x9E3779B97F4A7C15, 0, 2**64 - 1
    for i, bits in enumerate(np.ascontiguousarray(x).view(np.uint64).tolist()):
        period, k = divmod(i, len(KEYS))
        z = bits ^ int(KEYS.view(np.uint64)[k]) ^ (period * golden & mask)
        total += (z & 0xFFFFFFFF) * (z >> 32)
    return np.array([total & mask], dtype=np.uint64).view(np.int64)[0]


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (2500, 2), (1030, 20), (3000, 40)])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_fingerprints_are_as_defined(shape, order):
    X = np.random.default_rng(0).normal(size=shape)
    right = [plain_fingerprint(x) for x in X.T]
    X = np.repeat(X, 3, axis=1)[:, ::3] if order == "strided" else np.asarray(X, order=order)
    assert fingerprint_columns(X, 2).tolist() == right


@pytest.mark.parametrize("order", ["C", "F", "backwards"])
def test_fingerprints_of_many_blocks_are_those_of_one(order):
    X = np.random.default_rng(0).normal(size=(40_000, 9))
    right = [fingerprint_columns(X[:, j : j + 1], 1)[0] for j in range(9)]
    X = np.ascontiguousarray(X[::-1])[::-1] if order == "backwards" else np.asarray(X, order=order)
    assert fingerprint_columns(X, 2).tolist() == right


def test_fingerprints_of_strided_fields_are_as_defined():
    records = np.zeros(500, dtype=[("a", "<f8"), ("b", "i1"), ("c", "<f8")])  # values are 17 bytes apart
    records["c"] = np.random.default_rng(0).normal(size=500)
    assert fingerprint_columns(records["c"][:, np.newaxis], 1).tolist() == [plain_fingerprint(records["c"].copy())]


# --- read-only ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FITS)
def test_results_cannot_be_set(kind):
    fit = FITS[kind](values_of(SMALL))
    before = fit.lmbda.copy()
    with pytest.raises(AttributeError, match=rf"{type(fit).__name__}.lmbda cannot be set: a fit holds .*; fit again"):
        fit.lmbda = np.zeros(3)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del fit.lmbda
    np.testing.assert_array_equal(fit.lmbda, before)


@pytest.mark.parametrize("kind", [*FITS, "groups"])
def test_labels_of_columns_cannot_be_changed(kind):
    X = pytest.importorskip("pandas").DataFrame(values_of(SMALL), columns=list("abcdefgh")[: values_of(SMALL).shape[1]])
    fit = pk.fit(X, groups=np.repeat([1, 2], SMALL // 2)) if kind == "groups" else FITS[kind](X)
    before = list(fit.column_names)
    fit.column_names.reverse()
    fit.column_names.append("z")
    assert fit.column_names == before
    assert X[fit.column_names].shape[1] == len(before)


@pytest.mark.parametrize("kind", [*FITS, "groups"])
def test_arrays_of_results_cannot_be_written_to(kind):
    X = values_of(SMALL)
    fit = pk.fit(X, groups=np.repeat([1, 2], SMALL // 2)) if kind == "groups" else FITS[kind](X)
    for each in (fit, pickle.loads(pickle.dumps(fit)), copy.copy(fit)):
        arrays = {name: value for name, value in attributes_of(each).items() if isinstance(value, np.ndarray)}
        assert "lmbda" in arrays
        assert [name for name, array in arrays.items() if array.flags.writeable] == []
