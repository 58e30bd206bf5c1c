"""Display of results in a terminal and in a notebook: short, narrow, and safe for any labels."""

import html
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import powerkern as pk
from powerkern._results.inference import LikelihoodRatio, name_intervals
from powerkern._results.normality import Normality, NormalityMeasures
from powerkern.cellwise import check_data, ddc, wrap
from powerkern.cellwise.neighbors import Neighbors
from powerkern.results import Interval, Summary

MANY = 10_000
ODD = {
    "html": ["<script>alert('&')</script>", "a<b", "&lt;", '"'],
    "tuples": [("a", "<x>"), ("a", 3), ("b", "x"), ("b", ("c", 1.5))],
    "long": ["x" * 5000, "y" * 41, "z" * 40, "début " + "w" * 90 + " end"],
    "numbers": [2020, 123456, 7, -1],
    "spaces": ["a\nb", "c\td", " ", "e\r\nf"],
    "equal": ["a", "a", "a", "b"],
}
WIDEST = 40


class _Page(HTMLParser):
    """The tags of a page, and its texts as a browser displays them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).lognormal(size=(40, 4))


def _frame(values, labels):
    return pd.DataFrame(values, columns=pd.Index(labels, tupleize_cols=False))


@pytest.mark.parametrize("labels", ODD.values(), ids=ODD)
def test_odd_labels_are_shown_in_one_cell_each(X, labels):
    fit = pk.fit(_frame(X, labels), "box-cox")
    for result in (fit, fit.summary(), fit.confint(method="wald")):
        page = _Page(result._repr_html_())
        assert set(page.tags) <= {"div", "p", "table", "tr", "th", "td"}
        first = page.tags.index("tr")
        for label in labels:
            shown = " ".join(str(label).split())
            if len(shown) <= WIDEST:
                assert shown in page.texts or not shown
                assert shown in repr(result)
            else:
                assert any(len(text) == WIDEST and text[:24] == shown[:24] and text[-13:] == shown[-13:]
                           for text in page.texts)  # fmt: skip
        assert page.tags[first:].count("td") % 4 == 0
        assert max(map(len, repr(result).splitlines())) <= 160


@pytest.mark.parametrize("labels", ODD.values(), ids=ODD)
def test_odd_labels_of_groups_and_cells_are_escaped(X, labels):
    data = np.vstack([X, X, X])
    if len(set(labels)) == 4 and labels is not ODD["tuples"]:
        fit = pk.fit(data, groups=[labels[i % 4] for i in range(len(data))], column_names=labels)
        page = _Page(fit._repr_html_())
        assert set(page.tags) <= {"div", "p", "table", "tr", "th", "td"}
        assert page.tags.count("tr") == 5
        assert page.tags.count("th") == 5
    data[::7, :] *= [50.0, 1.0, 1.0, 80.0]
    cells = ddc(_frame(data, labels))
    page = _Page(cells._repr_html_())
    assert set(page.tags) <= {"div", "p", "table", "tr", "th", "td"}
    assert page.tags.count("tr") > 1
    bad = data.copy()
    bad[:, 1] = 5.0
    check = check_data(_frame(bad, labels))
    page = _Page(check._repr_html_())
    assert set(page.tags) <= {"div", "p"}
    assert any(text.startswith("column 1") and "distinct" in text for text in page.texts)


def test_columns_without_names_are_shown_by_their_positions_in_the_data():
    """Dropped columns do not shift the positions."""
    data = np.random.default_rng(3).normal(size=(60, 4))
    data[:, 1] = 0.0
    data[5, 3], data[[7, 9], 2] = 99.0, 99.0
    cells = ddc(data)
    counts = dict(zip([0, 2, 3], np.count_nonzero(cells.flagged, axis=0).tolist(), strict=True))
    expected = [str(one) for pair in sorted(counts.items(), key=lambda pair: -pair[1]) for one in pair if pair[1]]
    assert counts[2] >= 2
    assert counts[3] >= 1
    assert _Page(cells._repr_html_()).texts[-len(expected) :] == expected
    clean = ddc(np.random.default_rng(0).uniform(size=(30, 2)))
    assert "table" not in _Page(clean._repr_html_()).tags


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_results_on_cells_show_names_of_data_frames(library):
    module = pytest.importorskip(library)
    data = np.random.default_rng(3).uniform(-1.0, 1.0, size=(60, 2))
    data[5, 1] = 99.0
    columns = {"a": data[:, 0], "b<": data[:, 1]}
    cells = ddc(module.table(columns) if library == "pyarrow" else module.DataFrame(columns))
    assert _Page(cells._repr_html_()).texts[-2:] == ["b<", "1"]
    assert html.escape("b<") in cells.predict(module.table(columns) if library == "pyarrow"
                                              else module.DataFrame(columns))._repr_html_()  # fmt: skip


def test_many_columns_are_short():
    labels = [f"a column with a long name <{j}> and more of it" for j in range(MANY)]
    column = np.linspace(-1.0, 1.0, MANY)
    blocks = [{"lmbda": column}, {"se": column}, {"n_obs": column}]
    interval = Interval(column, column)
    figures = NormalityMeasures(column, column, column, column)
    for result in (
        Summary("title", labels, blocks, notes=["a", "b", "c"]),
        Summary("title", labels[:1000], [{"lmbda": column[:1000]}]),
        interval,
        Interval(column[:500], column[:500]),
        name_intervals(interval, labels),
        Interval(pd.Series(column[:50]), pd.Series(column[:50])),
        Normality(figures, figures),
        LikelihoodRatio(column[:999], 1, column[:999]),
        Neighbors(np.arange(999), column[:999], column[:999]),
    ):
        assert len(repr(result).splitlines()) <= 30, repr(result)
        assert max(map(len, repr(result).splitlines())) <= 160
        if not isinstance(result, Normality | LikelihoodRatio | Neighbors):
            assert len(result._repr_html_()) < 12_000
            assert "more" in result._repr_html_()


def test_fits_of_many_columns_and_groups_are_short():
    rng = np.random.default_rng(0)
    wide = pk.fit(rng.lognormal(size=(6, 2000)), column_names=[f"<{j}>" for j in range(2000)])
    assert len(repr(wide).splitlines()) == 11
    assert len(wide._repr_html_()) < 4000
    assert "1992 more columns" in wide._repr_html_()
    grouped = pk.fit(rng.lognormal(size=(3000, 12)), groups=np.repeat(np.arange(500), 6))
    assert len(repr(grouped).splitlines()) == 1
    assert len(repr(grouped.summary()).splitlines()) <= 25
    page = _Page(grouped._repr_html_())
    assert (page.tags.count("tr"), page.tags.count("td")) == (9, 72)
    assert page.texts[-1] == "... and 492 more groups and 4 more columns: see lambdas, summary()"
    shown = [float(text) for text in page.texts[10:19]]
    assert shown == pytest.approx([0, *grouped.lmbda[0, :8]], rel=1e-4)


def test_a_summary_of_few_columns_is_shown_whole(X):
    summary = pk.fit(np.hstack([X, X]), "box-cox").summary()
    assert repr(summary) == str(summary)
    more = pk.fit(np.hstack([X, X, X]), "box-cox").summary()
    assert "... and 7 more columns: to_text(None), to_dict() or to_frame()" in repr(more)
    assert "more columns" not in str(more)


def test_wide_tables_can_be_scrolled(X):
    for result in (pk.fit(X), pk.fit(X).summary(), pk.fit(X).confint()):
        text = result._repr_html_()
        assert text.count("overflow-x: auto") == text.count("<table>") > 0


def test_wrapped_values_do_not_print_the_data():
    wrapped = wrap(np.random.default_rng(0).normal(size=(500, 3)))
    assert len(repr(wrapped).splitlines()) == 1
