"""Names are preserved: frames and series as input and output, and fits that are split and stored by name."""

import html
import importlib
import os
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import powerkern as pk
from powerkern.cellwise import ddc, wrapped_pca
from powerkern.joint import fit_joint
from powerkern.outliers import combine_probabilities, mahalanobis
from powerkern.regression import fit_regression

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(60, 3))
    logs[:, 2] += logs[:, 0]
    frame = pd.DataFrame(np.exp(logs), columns=["age", "income", "dose"], index=[f"row {i}" for i in range(60)])
    frame.iloc[3, 1] = 1e6
    return frame


@pytest.fixture(scope="module")
def fit(X):
    return pk.fit(X, "box-cox", "robust")


def test_lambdas_are_a_series_by_name_or_an_array(fit, X):
    assert fit.lambdas.index.tolist() == ["age", "income", "dose"]
    assert fit.lambdas["dose"] == fit.lmbda[2]
    assert pk.fit(X.to_numpy()).lambdas is not None
    assert isinstance(pk.fit(X.to_numpy()).lambdas, np.ndarray)


def test_without_pandas_lambdas_and_intervals_are_arrays(monkeypatch):
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(50, 2)), column_names=["a", "b"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(fit.lambdas, np.ndarray)
    assert isinstance(fit.confint().low, np.ndarray)


@pytest.mark.parametrize("kind", ["columns", "regression", "joint"])
def test_intervals_and_lambdas_of_every_kind_of_fit_go_by_name(X, kind):
    made = {
        "columns": lambda data: pk.fit(data, "box-cox"),
        "regression": lambda data: fit_regression(data, np.arange(60.0), family="box-cox"),
        "joint": lambda data: fit_joint(data, family="box-cox"),
    }[kind]
    named, plain = made(X), made(X.to_numpy())
    low, high = named.confint()
    assert low.index.tolist() == high.index.tolist() == named.lambdas.index.tolist() == list(X.columns)
    np.testing.assert_array_equal(np.column_stack([low, high]), np.column_stack(plain.confint()))
    frame = named.confint().to_frame()
    assert frame.columns.tolist() == ["low", "high"]
    assert frame.loc["income", "low"] == low["income"]


def test_outliers_and_weights_have_the_index_and_the_columns_of_the_data(fit, X):
    beside = X.assign(word="x")[["dose", "word", "age", "income"]]
    plain = pk.fit(X.to_numpy(), "box-cox", "robust")
    for method in ("outliers", "weights"):
        found = getattr(fit, method)(beside)
        pd.testing.assert_frame_equal(
            found, pd.DataFrame(getattr(plain, method)(X.to_numpy()), index=X.index, columns=X.columns)
        )
    assert fit.outliers(X).loc["row 3", "income"]
    assert X[fit.outliers(X).any(axis=1)].index.tolist() == fit.outliers(X).index[fit.outliers(X).any(axis=1)].tolist()


def test_a_series_gives_a_series(X):
    fit = pk.fit(X["income"], "box-cox", "robust")
    found = fit.outliers(X["income"])
    assert isinstance(found, pd.Series)
    assert (found.name, found.index.tolist()) == ("income", X.index.tolist())
    assert found["row 3"]


def test_polars_gives_polars(fit, X):
    pl = pytest.importorskip("polars")
    data = pl.DataFrame({name: X[name].to_numpy() for name in X})
    assert fit.outliers(data).columns == ["age", "income", "dose"]
    assert fit.outliers(data)["income"][3] is True
    series = pk.fit(data["age"]).weights(data["age"])
    assert isinstance(series, pl.Series)
    assert series.name == "age"
    assert mahalanobis(data).to_numpy().shape == (60,)


def test_a_column_called_name_is_not_taken_for_the_name_of_rows():
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["name", "b"])
    assert mahalanobis(data).name is None


def test_arrow_tables_give_arrow(fit, X):
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(X, preserve_index=False)
    np.testing.assert_array_equal(fit.outliers(table), fit.outliers(X))
    components = wrapped_pca(table, 2)
    np.testing.assert_array_equal(components.outliers, wrapped_pca(X, 2).outliers)
    assert isinstance(components.outliers, pa.ChunkedArray)
    assert "outlying rows" in repr(components)


def test_cells_rows_and_components_go_by_the_names_of_the_data(X):
    data = np.log(X).assign(word="x", number=range(60))  # both columns are dropped, and one row
    data.iloc[7, :3] = np.nan
    found = ddc(data)
    kept = [name for name in X.index if name != "row 7"]
    for figure in (found.residuals, found.flagged, found.predicted, found.imputed):
        assert figure.index.tolist() == kept
        assert figure.columns.tolist() == found.column_names
    assert found.flagged_rows.index.tolist() == found.row_outlyingness.index.tolist() == kept
    again = found.predict(data[["dose", "income", "age"]].iloc[:5])
    assert again.flagged.index.tolist() == X.index[:5].tolist()

    components = wrapped_pca(X, 2)
    assert components.scores.columns.tolist() == components.transform(X).columns.tolist() == ["PC1", "PC2"]
    for rows in (components.score_distances, components.outliers, components.scores, *components.distances(X)):
        assert rows.index.tolist() == X.index.tolist()


def test_distances_and_combined_probabilities_have_the_index(X):
    assert mahalanobis(X).index.tolist() == fit_joint(X).mahalanobis(X).index.tolist() == X.index.tolist()
    P = X / X.max()
    for method in ("mean", "median", "maximum"):
        combined = combine_probabilities(P, method)
        assert combined.index.tolist() == X.index.tolist()
        np.testing.assert_array_equal(combined, combine_probabilities(P.to_numpy(), method))


# --- fits of some of the columns ----------------------------------------------------------------------


def test_a_fit_is_taken_apart_by_name_by_position_and_by_slice(fit, X):
    assert len(fit) == 3
    assert list(fit) == ["age", "income", "dose"]
    assert "income" in fit
    assert list(pk.fit(X.to_numpy())) == [0, 1, 2]
    for key in ("income", 1, -2, np.int64(1)):
        one = fit[key]
        assert (one.column_names, one.lmbda.tolist()) == (["income"], [fit.lmbda[1]])
        np.testing.assert_array_equal(one.transform(X["income"]), fit.transform(X)["income"])
        np.testing.assert_array_equal(one.transform(X["income"].to_numpy()), fit.transform(X)["income"])
    assert fit[["dose", "age"]].column_names == fit[::-2].column_names == ["dose", "age"]
    assert fit[[2, "age"]].transform(X).columns.tolist() == list(X.columns)


def test_the_fit_of_a_column_keeps_its_data_and_weights(X):
    weight = np.random.default_rng(1).uniform(size=60)
    fit = pk.fit(X, sample_weight=weight)
    np.testing.assert_array_equal(fit["income"].profile([0.0, 1.0])[0], fit.profile([0.0, 1.0])[1])
    np.testing.assert_array_equal(np.ravel(fit["dose"].confint()), fit.confint().to_frame().loc["dose"])
    assert fit["dose"].inverse_mean([[0.0, 1.0]], 0.5).shape == (1, 2)  # as for a fit of a vector


def test_columns_that_are_not_there_are_refused(fit, X):
    with pytest.raises(
        KeyError, match=r"no column 'incme'; the columns are 'age', 'income', 'dose'; did you mean 'income'"
    ):
        fit["incme"]
    with pytest.raises(KeyError, match="no column 3; there are 3 columns"):
        fit[3]
    with pytest.raises(KeyError, match="the columns have no names"):
        pk.fit(X.to_numpy())["age"]
    with pytest.raises(KeyError, match="no column is selected"):
        fit[[]]
    with pytest.raises(TypeError):
        fit[1.5]


def test_a_fit_is_not_a_table(fit):
    with pytest.raises((TypeError, ValueError), match="X"):
        pk.fit(fit)


# --- what a fit shows of itself -----------------------------------------------------------------------


def test_repr_has_the_first_lambdas_and_statuses(fit):
    head, names, *lines = repr(fit).splitlines()
    assert head == "PowerFit(family='box-cox', estimator=AdaptiveRewML(), 3 of 3 columns fitted)"
    assert names.split() == ["column", "lambda", "status"]
    assert [line.split()[0] for line in lines] == ["age", "income", "dose"]
    for line, lmbda, status in zip(lines, fit.lmbda, fit.status_text, strict=True):
        assert float(line.split()[1]) == pytest.approx(lmbda, rel=1e-4)
        assert line.endswith(status)


def test_repr_of_many_columns_is_short():
    wide = pk.fit(np.random.default_rng(0).lognormal(size=(20, 500)), "best")
    text = repr(wide)
    assert len(text.splitlines()) == 11
    assert "and 492 more columns" in text
    assert text.splitlines()[2].split()[1] in wide.families
    assert len(wide._repr_html_()) < 4000


class _Cells(HTMLParser):
    """The texts of a table as a browser displays them."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.tags = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.cells.append(data)


def test_html_escapes_names():
    bad = "<script>alert('&')</script>"
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(20, 2)), column_names=[bad, "b"])
    shown = _Cells(fit._repr_html_())
    assert "script" not in shown.tags
    assert bad in shown.cells
    assert html.escape(bad) in fit._repr_html_()


def test_the_title_of_a_summary_is_one_line(X):
    assert pk.fit(X).summary().title.count("\n") == 0


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["columns", "regression", "joint"])
def test_every_kind_of_fit_is_saved_and_loaded(tmp_path, X, kind):
    fit = {
        "columns": lambda: pk.fit(X, "box-cox", "robust"),
        "regression": lambda: fit_regression(X, np.arange(60.0), family="box-cox"),
        "joint": lambda: fit_joint(X, family="box-cox"),
    }[kind]()
    path = tmp_path / "fit.json"
    fit.save(path)
    for read in (pk.load(path), pk.load(str(path)), type(fit).from_json(path), type(fit).from_json(str(path))):
        assert type(read) is type(fit)
        assert read.to_json() == fit.to_json()
    assert os.listdir(tmp_path) == ["fit.json"]


def test_every_class_of_the_package_with_json_can_be_loaded():
    from powerkern._results.stored_fit import _HOMES, StoredFit

    for home in _HOMES.values():
        importlib.import_module(home)
    kinds = [StoredFit]
    for kind in kinds:  # the list grows during the loop
        kinds += kind.__subclasses__()
    assert {kind.__name__ for kind in kinds if not kind.__subclasses__()} == set(_HOMES)


def test_a_failed_save_preserves_the_old_file(tmp_path, fit, monkeypatch):
    path = tmp_path / "fit.json"
    fit.save(path)
    before = path.read_text()
    monkeypatch.setattr(type(fit), "to_json", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit.save(path)
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["fit.json"]


def test_files_that_hold_no_fit_are_refused(tmp_path, fit):
    def file(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    text = fit.to_json().encode()
    with pytest.raises(FileNotFoundError):
        pk.load(tmp_path / "none.json")
    with pytest.raises(ValueError, match="neither JSON text nor a file"):
        pk.PowerFit.from_json(str(tmp_path / "none.json"))
    for content, complaint in (
        (b"a,b\n1,2\n", "not a fit"),
        (b"[1, 2]", "not a fit"),
        (b"\xff\xfe\x00", "is not a text file in UTF-8"),
        (text.replace(b"powerkern.PowerFit", b"powerkern.os"), "was not written by the save method"),
        (text.replace(b'"standardize": true', b'"standardize": false'), "was changed after it was written"),
    ):
        with pytest.raises(ValueError, match=complaint):
            pk.load(file("bad.json", content))
    edited = file("edited.json", text.replace(b'"standardize": true', b'"standardize": false'))
    assert pk.load(edited, check=False).standardize is False


# --- columns of new data ------------------------------------------------------------------------------


def test_missing_columns_are_named_and_others_told(fit, X):
    renamed = X.rename(columns={"income": "Income", "dose": "Dose"})
    for call in (fit.transform, fit.inverse_transform, fit.outliers, fit.confint):
        with pytest.raises(
            ValueError, match=r"X lacks 'income', 'dose' of the columns .* it also has 'Income', 'Dose'"
        ):
            call(renamed)
    with pytest.raises(ValueError, match=r"X lacks 'dose' of the columns that were fitted$"):
        fit.transform(X[["age", "income"]])
    twice = pd.concat([X, X[["age"]]], axis=1)
    with pytest.raises(
        ValueError, match="X has 4 columns, the fit has 3; pass the columns that were fitted, each once"
    ):
        fit.transform(twice)


def test_names_that_are_no_text_find_their_columns():
    values = np.exp(np.random.default_rng(0).normal(size=(20, 2)))
    levels = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    for names, name in [
        ([2020, 2021], 2021),
        (levels, ("a", "y")),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), None),
    ]:
        frame = pd.DataFrame(values, columns=names)
        fit = pk.fit(frame)
        one = fit[frame.columns[1] if name is None else name]
        assert one.lmbda == fit.lmbda[1]
        assert one.lmbda.shape == (1,)
    assert pk.fit(pd.DataFrame(values, columns=levels))[[0, 1]].lmbda.shape == (2,)


def test_repeated_names_are_kept_and_not_guessed(tmp_path):
    frame = pd.DataFrame(np.exp(np.random.default_rng(0).normal(size=(20, 3))), columns=["a", "b", "a"])
    fit = pk.fit(frame)
    with pytest.raises(KeyError, match="2 columns have the name 'a'; pass the position"):
        fit["a"]
    assert fit[2].lmbda == fit.lmbda[2]
    fit.save(tmp_path / "fit.json")
    assert pk.load(tmp_path / "fit.json").column_names == ["a", "b", "a"]


def test_eight_columns_are_shown_whole():
    fit = pk.fit(np.random.default_rng(0).lognormal(size=(20, 9)))
    assert "and 1 more columns" in repr(fit)
    assert len(repr(fit[:8]).splitlines()) == 10
    assert "more" not in repr(fit[:8]) + fit[:8]._repr_html_()


def test_intervals_with_names_are_a_table():
    X = np.random.default_rng(0).lognormal(size=(50, 2))
    interval = pk.fit(X, "box-cox", column_names=["age", "income"]).confint()
    lines = repr(interval).splitlines()
    assert lines[0] == "Interval"
    assert [line.split()[0] for line in lines[1:]] == ["column", "age", "income"]
    assert len(lines[2].split()) == 3
    assert "<table" in interval._repr_html_()
    plain = pk.fit(X, "box-cox").confint()
    assert repr(plain).startswith("Interval(low=array(")
    assert "<table" in plain._repr_html_()


def test_a_level_is_not_data():
    fit = pk.fit(np.random.default_rng(0).lognormal(size=50), "box-cox")
    for method in (fit.confint, fit.summary, fit.rounded_fit):
        with pytest.raises(TypeError, match=r"X is the number 0.05, .*level=0.9"):
            method(0.05)
