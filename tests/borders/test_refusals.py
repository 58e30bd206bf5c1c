"""Test the `raise` statements of the package that no other test file executes.

``python tests/raises.py`` lists the `raise` statements that no test executes.
"""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pytest
from forged import forged

import powerkern as pk
from powerkern import federated, sketch
from powerkern._cli import compiling
from powerkern._estimators.base import ColumnSpec, Run
from powerkern._input.arrays import as_matrix
from powerkern._input.tables import files
from powerkern.completion import fit_ratings
from powerkern.kernels.transforms.family import BOX_COX
from powerkern.outliers import reliability_diagram
from powerkern.plot import lambda_map, score_plot
from powerkern.regression import fit_regression
from powerkern.sketch import engine, grouped

X = np.random.default_rng(0).lognormal(size=(40, 2))
FRAME = pd.DataFrame(X, columns=["u", "v"])
COVARIATES = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=["p", "q"])
GROUPS = np.repeat(["a", "b"], 20)


def _change(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Replace an entry of a record.

    Parameters
    ----------
    record : str
        JSON text.
    path : tuple of str or int
        Keys and positions that lead from the outermost object to the entry.
    value
        The new entry.

    Returns
    -------
    str
        JSON text of the changed record.
    """
    record = json.loads(record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(record)


# --- functions and methods --------------------------------------------------------------------------------


def _ratings(rows: Any) -> Callable[[], Any]:
    return lambda: fit_ratings((rows, [0, 1, 2], [1.0, 2.0, 3.0]))


def _regress(*names: str) -> Callable[[], Any]:
    return lambda: fit_regression(FRAME, COVARIATES.set_axis(names, axis=1))


def _fit_labelled(*labels: Any) -> Callable[[], Any]:
    """Fit groups from two chunks; each argument holds the labels of one chunk."""
    chunks = [part.assign(site=label) for part, label in zip((FRAME[:20], FRAME[20:]), labels, strict=True)]
    return lambda: sketch.fit_chunks(chunks, groups="site")


def _sparse_of_one_dimension() -> Any:
    import scipy.sparse

    return fit_ratings(scipy.sparse.coo_array(np.ones(3)))


def _inverse_of_three_columns() -> Any:
    from powerkern.sklearn import PowerTransformer

    return PowerTransformer().fit(X).inverse_transform(np.ones((3, 3)))


def _detector_without_rows() -> Any:
    from sklearn.neighbors import LocalOutlierFactor

    from powerkern.sklearn import OutlierProbability

    return OutlierProbability(LocalOutlierFactor(novelty=True)).fit([])


def _map_reduce(**options: Any) -> Callable[[], Any]:
    return lambda: sketch.fit_chunks(sketch.MapReduce(lambda *_: None), **options)


def _plot_without_marks() -> Any:
    from powerkern.plot import qq_plot

    return qq_plot(X, pk.fit(X, "box-cox", below=X < 0.5))


def _more_censored_cells_than_the_grid_has_room_for() -> Any:
    grid = sketch.range_of(X, "box-cox", limits=(0.5, None)).grid()
    return sketch.summarize_chunk(X, grid, sample_weight=np.full(len(X), 1e12))


def _sketch_on_a_grid_of(rows: slice) -> Any:
    one = sketch.summarize_chunk(X, sketch.range_of(X, "box-cox").grid())
    return one._on_grid(sketch.range_of(np.sort(X, axis=0)[rows], "box-cox").grid())


MAP = [[0.7, 0.6], [0.9, 0.8]], [[0.0, 1.0], [0.0, 1.0]]
CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "covariates of other names": (
        lambda: fit_regression(FRAME, COVARIATES).residuals(FRAME, COVARIATES.set_axis(["z", "q"], axis=1)),
        ValueError,
        r"covariates has the columns \['z', 'q'\], the fit has \['p', 'q'\]; pass these, in this order",
    ),
    "covariates named twice": (_regress("p", "p"), ValueError, r"covariates has 'p' more than once; give every"),
    "a covariate called Intercept": (
        _regress("Intercept", "p"),
        ValueError,
        r"covariates has a column 'Intercept'; leave it out: an intercept is added",
    ),
    "a profile without data": (
        lambda: pk.PowerFit.from_json(pk.fit(X).to_json()).summary(method="profile"),
        ValueError,
        r"profile intervals need the data, which the fit no longer has; pass them, or method='wald'",
    ),
    "sparse ratings of one dimension": (_sparse_of_one_dimension, ValueError, r"1 dimensions; pass a sparse matrix"),
    "ratings with masked labels": (
        _ratings(np.ma.array([0, 1, 2], mask=[0, 1, 0])),
        ValueError,
        r"labels of rows or columns are masked; leave out these ratings",
    ),
    "ratings with labels of three kinds": (
        _ratings(np.array([0, "a", (1,)], dtype=object)),
        TypeError,
        r"the labels of rows cannot be sorted; use numbers or strings",
    ),
    "a client without a name": (
        lambda: federated.Client(X, name=""),
        TypeError,
        r"name must be a string that is not empty, got ''",
    ),
    "bounds of data in three parts": (
        lambda: federated.Server(["a"], data_bounds=(1.0, [2.0, 3.0, 4.0], 3.0)),
        ValueError,
        r"data_bounds must be \(low, high\): numbers, or one per column",
    ),
    "a range without numbers": (
        lambda: sketch.Range.from_bounds(object(), 1.0, "box-cox", 1.0),
        ValueError,
        r"bounds must be \(low, high\): numbers, or one per column",
    ),
    "chunks whose groups are of two kinds": (
        _fit_labelled(1, "x"),
        TypeError,
        r"in chunk 1: groups mixes numbers and text; convert them to one type",
    ),
    "groups of chunks without rows": (
        lambda: sketch.fit_chunks([FRAME[:0].assign(site=1)], groups="site"),
        ValueError,
        r"the chunks have no rows",
    ),
    "three features for two": (_inverse_of_three_columns, ValueError, r"X has 3 features, but .* is expecting 2 feat"),
    "a detector without rows": (_detector_without_rows, ValueError, r"X is a list without rows; pass a table of shape"),
    "a mark of one lambda": (
        lambda: lambda_map(*MAP, marks={"best": [1.0]}),
        ValueError,
        r"each mark must be two lambdas, of the first and of the second column",
    ),
    "groups of which one has no lambda": (
        lambda: pk.fit(FRAME, "box-cox", groups=GROUPS, bounds=(5.0, 6.0), ymax=1e-3, n_threads=1),
        ValueError,
        r"^column 0 \('u'\), group 'a': no lambda satisfies ymax=0.001; pass a larger ymax$",
    ),
    "weights of an engine": (
        _map_reduce(sample_weight=[1.0]),
        TypeError,
        r"sample_weight must be the name of a column if chunks is a MapReduce, .* got list",
    ),
    "columns of text in an engine": (
        _map_reduce(non_numeric="ignore"),
        ValueError,
        r"non_numeric works only for chunks that this process reads, not for a MapReduce",
    ),
    "groups of chunks that are no names": (
        lambda: sketch.fit_chunks([FRAME], groups=[1]),
        TypeError,
        r"groups must name the column, or the columns, of the chunks that hold the labels",
    ),
    "heavy censored cells": (
        _more_censored_cells_than_the_grid_has_room_for,
        ValueError,
        r"column 0: the chunk has more censored cells, or more total weight, than the grid was made for; make the grid",
    ),
    "a sketch on a grid of fewer rows": (
        lambda: _sketch_on_a_grid_of(slice(1, None)),
        ValueError,
        r"column 0: the bins of a sketch lie beyond its range",
    ),
    "a sketch on a finer grid": (
        lambda: _sketch_on_a_grid_of(slice(10, 20)),
        ValueError,
        r"column 0: the grid has narrower bins than the sketch",
    ),
    "a sketch from text": (
        lambda: sketch.Sketch.from_bytes("text"),
        TypeError,
        r"a sketch must be read from bytes, got str",
    ),
    "two methods in a reliability diagram": (
        lambda: reliability_diagram([0, 1], [[0.1, 0.2], [0.3, 0.4]]),
        ValueError,
        r"y_prob has 2 columns; a reliability diagram shows one method",
    ),
    "a QQ plot without marks": (
        _plot_without_marks,
        ValueError,
        r"column 0 has censored cells in the fit; pass below=, above= or limits= as to the fit",
    ),
    "edges of bins that fall": (
        lambda: score_plot([1.0, 2.0, 3.0], bins=[3.0, 1.0]),
        ValueError,
        r"`bins` must increase",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_functions_and_methods_refuse_invalid_input(case: str) -> None:
    call, error, message = CALLS[case]
    with pytest.raises(error, match=message):
        call()


GROUPED_RECORDS = {
    "positions that fall": (("groups",), [[1.0, 0.0]], "they are not in ascending order"),
    "labels that are numbers": (("keys", 0, "labels"), [1, 2], "they are not a list of text"),
    "labels of another type": (("keys", 0, "type"), "complex128", "their type is complex128"),
    "labels that fall": (("keys", 0, "labels"), ["b", "a"], "they are not in ascending order"),
    "no groups": (("groups",), [[]], "there are no groups"),
    "a number of columns that does not divide": (("groups",), [[0.0, 1.0, 2.0]], "4 columns do not match 3 groups"),
    "no pooled fit": (("unknown",), "pooled", "the pooled fit does not match the groups"),
}


@pytest.mark.parametrize("case", GROUPED_RECORDS)
def test_damaged_records_of_groups_are_refused(case: str) -> None:
    path, value, message = GROUPED_RECORDS[case]
    text = pk.fit(FRAME, groups=GROUPS).to_json()
    with pytest.raises(ValueError, match=rf"^not a fit: the JSON text is damaged \(.*{message}\)$"):
        pk.GroupedFit.from_json(_change(text, path, value), check=False)


def test_negative_counts_of_censored_cells_are_refused() -> None:
    record = json.loads(pk.fit(X, "box-cox", limits=(0.5, None)).to_json())
    name = next(name for name in record["censored"] if min(record["censored"][name]) >= 0.0)
    text = _change(json.dumps(record), ("censored", name), [-1.0, 0.0])
    with pytest.raises(ValueError, match="a number of censored cells is negative or not a number"):
        pk.PowerFit.from_json(text, check=False)


RECORDS = {
    "censored cells": (("censored",), {}, "censored is not an object with the keys "),
    "arguments": (("options",), {}, "options is not an object with the keys "),
    "a label of two kinds": (
        ("column_names",),
        [{"integer": "1", "number": "2"}, "v"],
        "column_names is not a list of names",
    ),
}


@pytest.mark.parametrize("case", RECORDS)
def test_damaged_records_of_fits_are_refused(case: str) -> None:
    path, value, message = RECORDS[case]
    text = pk.fit(FRAME, "box-cox", limits=(0.5, None)).to_json()
    with pytest.raises(ValueError, match=rf"^not a fit: the JSON text is damaged \(.*{message}"):
        pk.PowerFit.from_json(_change(text, path, value), check=False)


def _grow(frame: Any) -> Any:
    return frame.assign(v=frame.v * np.where(GROUPS == "b", 10.0, 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_grow, r"column 1 \('v'\), group 'b': the chunk has values beyond those the grid was made for, "),
        (lambda frame: frame.drop(columns="v"), "X has 1 column, the fit has 2; pass the columns that were fitted"),
    ],
)
def test_chunks_of_groups_that_change_between_two_passes(change: Callable[[Any], Any], message: str) -> None:
    """The error names the columns of the data, not the columns of all groups side by side."""
    calls: list[int] = []

    def chunks() -> Any:
        calls.append(1)
        frame = FRAME.assign(site=GROUPS)
        yield change(frame) if len(calls) > 2 else frame

    with pytest.raises(ValueError, match=f"^in chunk 0: {message}"):
        sketch.fit_chunks(chunks, groups="site")


def test_groups_that_appear_between_two_passes() -> None:
    """The chunks contain new labels when they are read for the second time."""
    calls: list[int] = []

    def chunks() -> Any:
        calls.append(1)
        yield FRAME.assign(site=GROUPS if len(calls) == 1 else "c")

    with pytest.raises(ValueError, match="the data changed between two passes: there are new groups"):
        sketch.fit_chunks(chunks, groups="site")
    assert len(calls) == 2


def test_estimators_refuse_what_their_specification_excludes() -> None:
    """These errors are for authors of estimators. `FitSpec` refuses such requests first, with messages for users."""
    asked, run, matrix = ColumnSpec.free(2), Run(1), as_matrix(X)
    with pytest.raises(NotImplementedError, match="RewML cannot fit censored cells"):
        pk.RewML().fit_censored_columns(matrix, BOX_COX, asked, run)
    with pytest.raises(NotImplementedError, match="PPCC fits no origin"):
        pk.PPCC().fit_origin(X, BOX_COX, None, asked, run)
    with pytest.raises(NotImplementedError, match="CentralML fits columns with their origins"):
        pk.CentralML().fit_values(X, BOX_COX, None, run)


# --- the command line -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    FRAME.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("summary", "--level", "2"), "'2' is not between 0 and 1"),
        (("fit", "--missing", "a\rb"), r"is not a line of CSV: "),
        (("fit", "--encoding", "nonsense"), "'nonsense' is not an encoding that Python knows"),
    ],
)
def test_invalid_words_of_the_command_line_are_refused(
    run: Any, table: Path, words: tuple[str, ...], message: str
) -> None:
    code, _, said = run(words[0], table, *words[1:])
    assert code != 0
    assert message in said


def test_units_on_both_sides_of_a_number_are_refused(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("price\n$1\n$2\n$3%\n")
    code, _, said = run("fit", path, "--units", "$,%")
    assert code != 0
    assert "line 4" in said
    assert "'$3%'" in said


def test_a_fit_of_another_kind_is_refused(run: Any, table: Path, tmp_path: Path) -> None:
    fit_regression(FRAME, COVARIATES).save(tmp_path / "fit.json")
    code, _, said = run("outliers", table, "--fit", tmp_path / "fit.json")
    assert code != 0
    assert "fit.json is a RegressionFit; --fit takes a file written by `powerkern fit -o`" in said


@pytest.mark.parametrize(
    ("words", "library", "message"),
    [
        (("plot", "-o", "x.png"), "matplotlib", "plots need matplotlib: pip install matplotlib"),
        (("fit", "--progress"), "tqdm", "tqdm"),
    ],
)
def test_commands_name_the_missing_library(
    run: Any, table: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], library: str, message: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    code, _, said = run(words[0], table, *words[1:])
    assert code != 0
    assert message in said
    assert "pip install" in said


def test_a_parquet_file_of_identifiers_is_refused(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "ids.parquet"
    pd.DataFrame({"user_id": np.arange(2**60, 2**60 + 50)}).to_parquet(path)
    code, _, said = run("fit", path)
    assert code != 0
    assert "user_id" in said


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_closed_streams_are_refused(run: Any, table: Path, monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    if stream == "stdin":
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(files.BadInput, match="standard input is closed"), files.ExitStack() as stack:
            files._text_source(stack, Path("-"), "csv", SimpleNamespace(encoding="utf-8"))
        return
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(files.BadInput, match="standard output is closed: name a file with -o"):
        files.write(None, SimpleNamespace(delimiter=","), SimpleNamespace(delimiter=None)).__enter__()


def test_a_killed_compiling_process_is_reported(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> Any:
        raise BrokenProcessPool

    monkeypatch.setattr(compiling, "_start_workers", killed)
    monkeypatch.setattr(compiling, "JIT_DISABLED", False)
    code, _, said = run("compile", "--to", tmp_path)
    assert code != 0
    assert "compiled code cannot be stored: a compiling process was killed, perhaps because memory ran out" in said


# --- missing libraries ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "library", "message"),
    [
        ("dask.py", "dask", r"powerkern.dask needs Dask: pip install 'dask\[array\]'"),
        ("xarray.py", "xarray", "powerkern.xarray needs xarray: pip install xarray"),
        ("ray.py", "ray", r"powerkern.ray needs Ray Data: pip install 'ray\[data\]'"),
        ("spark.py", "pyspark", "powerkern.spark needs PySpark, pandas and PyArrow: pip install pyspark"),
        ("onnx.py", "skl2onnx", "powerkern.onnx needs ONNX: pip install skl2onnx onnxruntime"),
    ],
)
def test_modules_that_need_a_library(monkeypatch: pytest.MonkeyPatch, module: str, library: str, message: str) -> None:
    """A module, executed again under another name, raises an error that names the missing library."""
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, library, None)
    path = Path(pk.__file__).parent / module
    spec = importlib.util.spec_from_file_location("powerkern._again", path)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=message):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.mark.parametrize(
    ("absent", "message"),
    [
        ("sklearn", "import of sklearn halted|No module named 'sklearn'"),
        (
            "sklearn.utils._param_validation",
            r"scikit-learn .* does not have names that this powerkern imports .*: install a newer",
        ),
    ],
)
def test_a_missing_private_module_of_scikit_learn_is_explained(
    monkeypatch: pytest.MonkeyPatch, absent: str, message: str
) -> None:
    """Without scikit-learn, its import error is unchanged. If a private module is missing, the error explains it."""
    path = Path(pk.__file__).parent / "sklearn" / "_compat.py"
    code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    if absent == "sklearn":
        for name in [name for name in sys.modules if name.split(".")[0] == absent]:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(ImportError, match=message):
        exec(code, {"__name__": "powerkern.sklearn._compat"})


@pytest.mark.parametrize(
    ("call", "library", "error", "message"),
    [
        (
            lambda: fit_regression(FRAME, COVARIATES, formula="~ p"),
            "formulaic",
            ImportError,
            "a formula needs formulaic: pip install formulaic",
        ),
        (
            lambda: pk.fit(X, groups=GROUPS).to_frame(),
            "pandas",
            ImportError,
            "to_frame needs pandas: pip install pandas",
        ),
        (
            lambda: files._open_zstandard(io.BytesIO(), "rb"),
            "pyarrow",
            files.BadInput,
            ".zst files need Python 3.14 or pyarrow: pip install pyarrow",
        ),
    ],
)
def test_calls_name_the_library_that_they_need(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any], library: str, error: type[Exception], message: str
) -> None:
    if library == "pyarrow" and sys.version_info >= (3, 14):
        pytest.skip("the standard library has Zstandard")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(error, match=message):
        call()


def test_an_arrow_array_without_pyarrow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from powerkern._input import narwhals_frame

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TypeError, match="a Column needs pyarrow: pip install pyarrow"):
        narwhals_frame._load_arrow(type("Column", (), {"__arrow_c_array__": None})())


# --- what engines and authors of engines see --------------------------------------------------------------


def _damaged_sketch() -> Any:
    """Read the bytes of a sketch whose sums, including the number of rows, have the wrong sign."""
    one = sketch.summarize_chunk(X, sketch.range_of(X, "box-cox").grid())
    return sketch.Sketch.from_bytes(sketch.Sketch(one.grid, -one.sums, one._roundings).to_bytes())


def _forged_sketch(**changes: Any) -> Callable[[], Any]:
    """Return a function that reads a forged sketch.

    The keyword arguments replace entries of its description. Without any, the payload has an extra number.
    """
    data = sketch.summarize_chunk(X, sketch.range_of(X, "box-cox").grid()).to_bytes()

    def change(description: Any, payload: bytearray) -> None:
        description.update(changes)
        if not changes:
            payload.extend(bytes(8))

    return lambda: sketch.Sketch.from_bytes(forged(data, change))


NUMBERS_AND_TEXT = [engine.TableColumn("u", "double", True), engine.TableColumn("name", "string", False)]
ENGINES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no outcome": (lambda: engine.ChunkOutcome().value(), ValueError, "no rows"),
    "an error": (lambda: engine.ChunkOutcome(error=TypeError("row 3: no number")).value(), TypeError, "row 3: no num"),
    "weights that are numbers": (
        lambda: engine.columns_to_read(NUMBERS_AND_TEXT, None, 3.0),
        TypeError,
        "sample_weight must be the name of a column, got float",
    ),
    "no numbers": (
        lambda: engine.columns_to_read(NUMBERS_AND_TEXT[1:], None, None),
        TypeError,
        "no column of X holds numbers: 'name'",
    ),
    "a sketch of negative numbers of rows": (_damaged_sketch, ValueError, "sketch.*damaged|damaged.*sketch"),
    "a sketch of a negative number of limits": (_forged_sketch(intervals=-1), ValueError, "damaged"),
    "a sketch with a number too many": (_forged_sketch(), ValueError, "damaged"),
    "a sketch with limits of one column": (_forged_sketch(limits=[[0.5], [None]]), ValueError, "damaged"),
    "groups of blocks of columns": (
        lambda: grouped._Labels._join_columns([]),
        TypeError,
        "groups need chunks that have all columns",
    ),
    "parts of groups": (
        lambda: grouped._LabelsPass(groups=("site",), column_names=None).part([0]),
        TypeError,
        "groups need chunks that have all columns",
    ),
    "weights beside groups": (
        lambda: grouped._LabelsPass(groups=("site",), column_names=None)(FRAME.assign(site=1), [1.0] * 40),
        ValueError,
        "weights cannot be combined with groups in chunks; repeat the rows, or use powerkern.fit",
    ),
}


@pytest.mark.parametrize("case", ENGINES)
def test_engines_refuse_invalid_input(case: str) -> None:
    call, error, message = ENGINES[case]
    with pytest.raises(error, match=message):
        call()


def test_the_value_of_an_outcome_is_its_summary() -> None:
    assert engine.ChunkOutcome(summary=FRAME).value() is FRAME


def test_an_array_that_cannot_be_exported_is_refused() -> None:
    class Tensor:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("gradients cannot be exported\ncall detach")

    with pytest.raises(TypeError, match=r"^X cannot be read as an array of NumPy: gradients cannot be exported$"):
        pk.fit(Tensor())


# --- engines that are not started ---------------------------------------------------------------------


def test_onnx_graphs_of_several_inputs_are_refused() -> None:
    pytest.importorskip("skl2onnx")
    onnx = pytest.importorskip("powerkern.onnx")
    with pytest.raises(ValueError, match="PowerTransformer must have one input, a table; declare one in"):
        onnx._shape(SimpleNamespace(inputs=[None, None]))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [([1, 2], r"SecAgg\+ needs 3 to 1023 sites, got 2"), ([1, 2, 3], r"SecAgg\+ gave no total: a site failed or was")],
)
def test_secagg_without_a_total_is_an_error(monkeypatch: pytest.MonkeyPatch, nodes: list[int], message: str) -> None:
    """Mock objects replace the modules of Flower, so no site answers and there is no total."""
    names = ("flwr", "app", "common", "compat", "compat.common", "server", "server.workflow", "serverapp")
    for name in (*names, "server.strategy", "server.workflow.constant"):
        full = name if name == "flwr" else f"flwr.{name}"
        monkeypatch.setitem(sys.modules, full, MagicMock(FedAvg=object))
    spec = importlib.util.spec_from_file_location(
        "powerkern._again", Path(pk.__file__).parent / "federated" / "secagg.py"
    )
    assert spec is not None
    assert spec.loader is not None
    secagg = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(secagg)
    with pytest.raises(federated.ProtocolError, match=message):
        secagg.secure_total(None, None, nodes, b"", 1.0)


RAY: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "columns of chunks": (
        lambda ray: ray.fit([lambda: X], columns=["u"]),
        TypeError,
        "columns= is for datasets; X is a list",
    ),
    "a transform of an array": (
        lambda ray: ray.transform(X, pk.fit(X)),
        TypeError,
        "X is a ndarray, not a Ray dataset; in a task, call the method transform of the fit",
    ),
    "a dataset without blocks": (lambda ray: ray._table(None), ValueError, "no rows"),
    "weights of one chunk for two": (
        lambda ray: ray.fit([lambda: X, lambda: X], sample_weight=[lambda: X[:, 0]]),
        ValueError,
        "sample_weight has 1 chunks, X has 2; pass one for each",
    ),
}


@pytest.mark.parametrize("case", RAY)
def test_ray_refuses_invalid_input(case: str) -> None:
    pytest.importorskip("ray.data", reason="Ray Data is not installed")
    ray = pytest.importorskip("powerkern.ray")
    call, error, message = RAY[case]
    with pytest.raises(error, match=message):
        call(ray)


def test_spark_refuses_invalid_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    spark = pytest.importorskip("powerkern.spark")
    with pytest.raises(TypeError, match="X is a DataFrame, not a Spark data frame; use"):
        spark.fit(FRAME)
    monkeypatch.setattr(spark, "_table", lambda _: NUMBERS_AND_TEXT)
    with pytest.raises(ValueError, match="groups='site': there is no column of that name among 'u', 'name'"):
        spark.fit(FRAME, groups="site")
