"""Fits of chunks with censored cells agree with fits of the rows in memory, and with maxima computed to 60 digits."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.testing as npt
import pandas as pd
import pytest
from forged import forged
from reference_files import read_reference

import powerkern as pk
from powerkern import Status
from powerkern._typing import FloatArray
from powerkern.sketch import MapReduce, Sketch, extend, finish, fit_chunks, merge, range_of, summarize_chunk
from powerkern.sketch.grids import Grid, Range
from powerkern.sketch.intervals import MOST_INTERVALS

RNG = np.random.default_rng(43)
N = 400
CASES: list[dict[str, Any]] = read_reference("limits.json")["cases"]
#: Accuracy of the search for lambda, in standard errors.
SEARCH = 1e-9


def rounded_columns() -> FloatArray:
    """Return columns of several shapes with ties and missing values."""
    x = np.column_stack([RNG.lognormal(size=N), RNG.gamma(2.0, size=N), RNG.lognormal(sigma=2.0, size=N)])
    x = np.round(x, 2) + 0.01
    x[RNG.random(x.shape) < 0.1] = np.nan
    return x


X = rounded_columns()
LIMITS = LOW, HIGH = np.array([0.5, 0.8, -np.inf]), np.array([4.0, np.inf, np.inf])
WEIGHT = RNG.random(N) * (RNG.random(N) < 0.9)


def split(rows: Any, n: int = 5) -> list[Any]:
    return [rows[k * len(rows) // n : (k + 1) * len(rows) // n] for k in range(n)]


def assert_same_fit(found: pk.PowerFit, expected: pk.PowerFit, slack: float = SEARCH) -> None:
    """Check that `found`, a fit from chunks, agrees with `expected`, the fit of the rows in memory.

    The tolerance for lambda is the error bound of `found` plus `slack` standard errors.
    """
    error = np.where(expected.n_censored > 0.0, found.lmbda_error, 1e-12)
    se = np.nan_to_num(expected.standard_error())
    npt.assert_array_equal(found.status, expected.status)
    assert (abs(found.lmbda - expected.lmbda) <= error + slack * se).all()
    npt.assert_allclose(found.n_censored, expected.n_censored, rtol=1e-14)
    npt.assert_allclose(found.n_obs, expected.n_obs, rtol=1e-14)
    for name in ("loc", "scale", "nll"):
        npt.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-10)
    npt.assert_allclose(found.standard_error(), expected.standard_error(), rtol=1e-6)


# --- accuracy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(60))
def test_maxima_are_those_of_the_reference(number: int) -> None:
    case = CASES[number]
    low, high = (np.array([np.nan if end is None else end for end in case[side]]) for side in ("low", "high"))
    is_value = low == high
    x, nothing = np.where(is_value, low, 1.0), np.full(low.size, np.nan)
    lower = np.where(is_value, np.nan, np.where(np.isnan(low), -np.inf, low))
    upper = np.where(is_value, np.nan, np.where(np.isnan(high), np.inf, high))
    assert np.isnan(nothing).all()
    weight, sides = split(np.array(case["weight"]), 3), (split(lower, 3), split(upper, 3))
    fit = fit_chunks(split(x, 3), case["family"], between=sides, sample_weight=weight)
    assert fit.status[0] == Status.SCANNED
    assert abs(fit.lmbda[0] - case["lmbda"]) <= fit.lmbda_error[0] <= 1e-8 * case["se"]
    assert abs(fit.loc[0] - case["loc"]) <= 1e-8 * case["loc_se"]
    assert abs(fit.scale[0] - case["scale"]) <= 1e-8 * case["scale_se"]
    npt.assert_allclose(fit.standard_error(), case["se"], rtol=1e-7)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_limits_of_columns_agree_with_the_fit_in_memory(family: str, weight: FloatArray | None) -> None:
    expected = pk.fit(X, family, limits=LIMITS, sample_weight=weight)
    found = fit_chunks(split(X), family, limits=LIMITS, sample_weight=None if weight is None else split(weight))
    assert_same_fit(found, expected)
    assert found.lmbda_error[2] == 0.0
    npt.assert_allclose(found.confint(), expected.confint(), rtol=1e-6)
    npt.assert_allclose(found.profile([-0.5, 0.5]), expected.profile([-0.5, 0.5]), rtol=1e-8, atol=1e-7)
    npt.assert_allclose(found.expected(X), expected.expected(X), rtol=1e-7, atol=1e-9)
    npt.assert_allclose(found.lr_test(0.0).statistic, expected.lr_test(0.0).statistic, rtol=1e-6, atol=1e-7)


def make_marks() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return data, the masks of cells below a limit and above a limit, and the lower and upper ends of intervals.

    All are of shape (N, 3). Lower limits differ between cells; the upper limit is 5.
    """
    below, above = X < 0.45, X > 5.0
    x = np.where(below, np.ceil(10.0 * X) / 10.0, X)
    inside = (X > 2.0) & (X < 3.0)
    return x, below, above, np.where(inside, 2.0, np.nan), np.where(inside, 3.0, np.nan)


@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_marked_cells_agree_with_the_fit_in_memory(family: str) -> None:
    x, below, above, lower, upper = make_marks()
    if family == "yeo-johnson":
        x, lower, upper = x - 1.0, lower - 1.0, upper - 1.0  # values of both signs
    expected = pk.fit(x, family, below=below, above=above, between=(lower, upper))
    sides = (split(lower), lambda: iter(split(upper)))
    assert_same_fit(fit_chunks(split(x), family, below=split(below), above=split(above), between=sides), expected)
    total, grids = None, []
    for each in zip(*(split(part) for part in (x, below, above, lower, upper)), strict=True):
        marks = {"below": each[1], "above": each[2], "between": each[3:]}
        total = extend(total, each[0], family, **marks)
        grids.append(range_of(each[0], family, **marks))
    assert total is not None
    assert_same_fit(finish(total), expected)
    npt.assert_array_equal(functools.reduce(merge, grids).n_obs, total.n_obs)


HARD: dict[str, Callable[[], FloatArray]] = {
    "far from zero": lambda: 1e6 + RNG.normal(size=N),
    "tight": lambda: 1e4 + 1e-3 * RNG.normal(size=N),
    "huge": lambda: np.exp(20.0 * RNG.normal(size=N)),
    "tiny": lambda: 1e-150 * RNG.lognormal(size=N),
    "few values": lambda: RNG.integers(1, 5, N).astype(float),
    "outlier": lambda: np.append(RNG.lognormal(size=N - 1), 1e9),
    "skew": lambda: RNG.lognormal(size=N) ** 8,
}


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("family", ["box-cox", "yeo-johnson"])
def test_the_error_bound_holds_for_hard_columns(family: str, name: str, share: float) -> None:
    x = HARD[name]()
    limits = (float(np.quantile(x, share)), None)
    expected, found = pk.fit(x, family, limits=limits), fit_chunks(split(x), family, limits=limits)
    se = np.nan_to_num(expected.standard_error(), nan=np.inf)
    if found.status[0] == Status.UNRESOLVED or not found.status[0] == expected.status[0] == Status.SCANNED:
        assert found.lmbda_error[0] == np.inf or expected.status[0] != Status.SCANNED
        return
    assert abs(found.lmbda[0] - expected.lmbda[0]) <= found.lmbda_error[0] + SEARCH * se[0]
    assert found.lmbda_error[0] <= 1e-6 * se[0]


# --- chunks with few values ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("rows", [slice(0, 0), slice(0, 1), slice(0, 3), slice(0, 30)])
def test_few_values_beside_many_limits_agree_with_the_fit_in_memory(rows: slice) -> None:
    limit = np.repeat([0.1, 0.3, 0.7, 1.1], 5)
    x = np.append(np.linspace(0.6, 2.0, 30)[rows], limit)
    below = np.arange(x.size) >= x.size - limit.size
    expected = pk.fit(x, "box-cox", below=below)
    assert_same_fit(fit_chunks([x[-12:], x[:-12]], "box-cox", below=[below[-12:], below[:-12]]), expected)
    marked = extend(extend(None, x[-20:], "box-cox", below=below[-20:]), x[:-20], "box-cox")
    assert_same_fit(finish(marked), expected)
    unmarked = extend(extend(None, x[:-20], "box-cox"), x[-20:], "box-cox", below=below[-20:])
    assert_same_fit(finish(unmarked), expected)


@pytest.mark.parametrize("first", [slice(0, 100), slice(100, N)])
def test_chunks_may_hold_censored_or_missing_cells_only(first: slice) -> None:
    x = np.where(np.arange(N)[:, None] < 100, 0.2, X)
    x[3] = np.nan
    expected = pk.fit(x, "box-cox", limits=(0.2, None))
    rest = [x[100:] if first.start == 0 else x[:100], np.full((3, 3), np.nan), x[:0]]
    assert_same_fit(fit_chunks([x[first], *rest], "box-cox", limits=(0.2, None)), expected)


# --- sketches -----------------------------------------------------------------------------------------------


def sketch_of(rows: FloatArray, grid: Grid) -> Sketch:
    return summarize_chunk(rows, grid)


def test_merging_is_exact_in_any_order_and_sketches_are_stored() -> None:
    grid = functools.reduce(merge, (range_of(part, "box-cox", limits=LIMITS) for part in split(X))).grid()
    parts = [sketch_of(part, grid) for part in split(X)]
    forward, backward = functools.reduce(merge, parts), functools.reduce(merge, parts[::-1])
    assert forward == backward == merge(merge(parts[1], parts[0]), merge(parts[2], merge(parts[4], parts[3])))
    for read in (Sketch.from_bytes(forward.to_bytes()), pickle.loads(pickle.dumps(forward))):
        assert read == forward
        npt.assert_array_equal(finish(read).lmbda, finish(forward).lmbda)
    assert Grid.from_bytes(grid.to_bytes()) == grid
    found = range_of(X, "box-cox", limits=LIMITS)
    assert Range.from_bytes(found.to_bytes()) == found
    npt.assert_array_equal(found.limits, [LOW, HIGH])
    assert forward.part([1])._merge(parts[0].part([1])) == forward._merge(parts[0]).part([1])
    assert_same_fit(finish(forward), pk.fit(X, "box-cox", limits=LIMITS))


@pytest.mark.parametrize("offset", [8, 16, 24, 40, 56, 72, 88, 104])
def test_forged_intervals_are_refused(offset: int) -> None:
    """A sketch is rejected if the intervals at the end of its payload contain a number that no cells can produce."""
    total = extend(None, X, "box-cox", limits=LIMITS)

    def forge(_: Any, payload: bytearray) -> None:
        payload[len(payload) - offset - 48 : len(payload) - offset - 40] = np.float64(-3.0).tobytes()

    with pytest.raises(ValueError, match="not a sketch"):
        Sketch.from_bytes(forged(total.to_bytes(), forge))


def test_sketches_with_other_limits_cannot_be_merged() -> None:
    a, b = range_of(X, limits=LIMITS), range_of(X, limits=(0.1, None))
    with pytest.raises(ValueError, match=r"column 0 has limits \(0.5, 4\) in one chunk and \(0.1, None\) in another"):
        merge(a, b)


def test_limits_are_aligned_by_label_in_frames_of_any_order() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    low = pd.Series({"c": -np.inf, "b": 0.8, "a": 0.5})
    expected = pk.fit(frame, "box-cox", limits=(low, None))
    parts = [part if k % 2 else part[["c", "a", "b"]] for k, part in enumerate(split(frame))]
    found = fit_chunks(parts, "box-cox", limits=(low, None))
    npt.assert_allclose(found.lmbda[[1, 2, 0]], expected.lmbda, rtol=0.0, atol=1e-10)
    total = None
    for part in parts:
        total = extend(total, part, "box-cox", limits=(low, None))
    npt.assert_allclose(finish(total).lmbda[[1, 2, 0]], expected.lmbda, rtol=0.0, atol=1e-10)


def test_marks_without_labels_are_refused_for_reordered_frames() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    below = frame < 0.5
    chunks = [frame[:200], frame[200:][["c", "b", "a"]]]
    found = fit_chunks(chunks, "box-cox", below=[below[:200], below[200:]])
    npt.assert_allclose(found.lmbda, pk.fit(frame, "box-cox", below=below).lmbda, rtol=0.0, atol=1e-10)
    with pytest.raises(ValueError, match="chunk 1: the columns are in another order than in the first chunk"):
        fit_chunks(chunks, "box-cox", below=[below[:200].to_numpy(), below[200:].to_numpy()])


def make_flagged() -> tuple[pd.DataFrame, pd.DataFrame, FloatArray]:
    """Return a data frame with a column of flags, the same data frame without it, and the mask of the flagged cells."""
    data = pd.DataFrame(X, columns=["a", "b", "c"])
    flag = (data["b"] < 0.6).to_numpy()
    return data.assign(b_flag=flag), data, np.column_stack([np.zeros(N, bool), flag, np.zeros(N, bool)])


def test_chunks_tables_and_engines_may_have_columns_of_flags() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    frame, data, marks = make_flagged()
    expected = pk.fit(data, "box-cox", below=marks)

    def engine(function: Any, merge: Any) -> Any:
        return functools.reduce(merge, map(function, split(frame)))

    for source in (split(frame), pyarrow.Table.from_pandas(frame), MapReduce(engine)):
        found = fit_chunks(source, "box-cox", below={"b": "b_flag"})
        assert found.column_names == ["a", "b", "c"]
        assert_same_fit(found, expected)
    total = functools.reduce(lambda t, part: extend(t, part, "box-cox", below={"b": "b_flag"}), split(frame), None)
    assert_same_fit(finish(total), expected)


def test_groups_have_limits() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(site=np.arange(N) % 2)
    expected = pk.fit(frame, "box-cox", groups="site", limits=LIMITS)
    found = fit_chunks(split(frame), "box-cox", groups="site", limits=LIMITS)
    npt.assert_allclose(found.lmbda, expected.lmbda, rtol=0.0, atol=1e-9)


def test_a_shift_applies_to_limits_too() -> None:
    expected = pk.fit(X - 0.5, "box-cox", limits=(0.1, None), shift=0.6)
    assert_same_fit(fit_chunks(split(X - 0.5), "box-cox", limits=(0.1, None), shift=0.6), expected)


def test_bounds_hold_and_given_lambdas_are_kept() -> None:
    for options in ({"bounds": (0.4, 2.0)}, {"lmbda": [0.3, np.nan, 1.0]}):
        expected = pk.fit(X, "box-cox", limits=LIMITS, **options)
        found = fit_chunks(split(X), "box-cox", limits=LIMITS, **options)
        npt.assert_array_equal(found.status, expected.status)
        npt.assert_allclose(found.lmbda, expected.lmbda, rtol=0.0, atol=1e-10)
        npt.assert_allclose(found.loc, expected.loc, rtol=1e-9)


def test_columns_without_censored_cells_have_the_bits_of_a_fit_without_limits() -> None:
    plain, limited = fit_chunks(split(X)), fit_chunks(split(X), limits=([0.5, -np.inf, -np.inf], None))
    for name in ("lmbda", "loc", "scale", "status"):
        npt.assert_array_equal(getattr(plain, name)[1:], getattr(limited, name)[1:])


# --- refusals -----------------------------------------------------------------------------------------------


def unreadable() -> Any:
    raise AssertionError("data were read")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "robust"}, "work only with estimator='mle'"),
        ({"family": "best"}, "work only with one family"),
    ],
)
def test_options_that_exclude_limits_are_refused_before_data_are_read(options: dict[str, Any], message: str) -> None:
    for limits in ({"limits": (0.1, None)}, {"below": unreadable}, {"between": (unreadable, unreadable)}):
        with pytest.raises(ValueError, match=message):
            fit_chunks(unreadable, **options, **limits)


def test_the_error_of_lambda_is_that_of_censored_cells() -> None:
    x = np.random.default_rng(7).lognormal(size=(80, 2))
    fit = fit_chunks(split(x, 3), "box-cox", limits=([0.5, 1e-9], None))
    assert fit.lmbda_error[0] > 0.0
    assert fit.lmbda_error[1] == 0.0


def test_too_many_limits_are_refused_by_name() -> None:
    x = np.arange(1.0, MOST_INTERVALS + 10.0)
    x = np.append(x, x)
    message = r"column 0 \('dose'\): it has more than 4096 distinct limits, which a summary of chunks cannot hold;"
    for parts in ([x], split(x, 4)):
        with pytest.raises(ValueError, match=message):
            fit_chunks(
                [pd.DataFrame({"dose": part}) for part in parts],
                below=[np.ones((len(part), 1), bool) for part in parts],
            )


def test_marks_must_suit_the_chunks() -> None:
    below = split(X < 0.5)
    with pytest.raises(ValueError, match="chunks has more entries than the 4 of below; pass an array for each chunk"):
        fit_chunks(split(X), below=below[:4])
    with pytest.raises(ValueError, match=r"chunk 2: below must have the shape of X"):
        fit_chunks(split(X), below=[*below[:2], below[2][1:], *below[3:]])
    with pytest.raises(TypeError, match="above is an iterator, which can be read only once"):
        fit_chunks(split(X), above=iter(below))
    with pytest.raises(TypeError, match="below must name columns of flags if chunks is a MapReduce"):
        fit_chunks(MapReduce(unreadable), below=below)
    with pytest.raises(ValueError, match="cannot be combined with groups in chunks; pass limits=, or fit the rows"):
        fit_chunks(split(pd.DataFrame(X)), groups="site", below=below)
    with pytest.raises(ValueError, match="column 0: the chunk has values beyond those the grid was made for"):
        summarize_chunk(X[:5], range_of(X + 5.0).grid(), below=X[:5] < 0.5)


def test_marks_with_a_table_read_in_batches_are_refused() -> None:
    table = pytest.importorskip("pyarrow").table({"a": X[:, 0]})
    with pytest.raises(TypeError, match="below must name columns of flags if chunks is a table"):
        fit_chunks(table, below=[X[:, 0] < 0.5])
