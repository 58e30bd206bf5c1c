"""Draws pictures of the README and of pages, light and dark, from tables beside them: python docs/images/pages.py."""

import csv
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import powerkern as pk
from powerkern.plot import before_after_plot

HERE = Path(__file__).parent
TABLES = HERE.parent / "benchmarks"
#: what a figure is called in a table, and in the picture
OVER_PEERS = {
    "fit yeo-johnson, 50 x 20000": "Yeo-Johnson fit, 20,000 columns of 50, two threads / scikit-learn",
    "fit box-cox, row-major": "Box-Cox fit, 1,000 columns of 10,000, two threads / scikit-learn",
    "fit yeo-johnson, row-major": "Yeo-Johnson fit, the same / scikit-learn",
    "stats.boxcox of 1,000": "boxcox of 1,000 values / SciPy",
    "proposal 2 of 10000": "Huber's proposal 2, 200 columns, one thread / statsmodels",
    'estimator="ppcc", columns of 200': "straightest QQ plot, columns of 200 / SciPy",
    "transform yeo-johnson, standardized": "Yeo-Johnson transform / scikit-learn",
    "biweight": "biweight, 100 columns, one thread / astropy",
    "inverse_transform yeo-johnson, standardized": "Yeo-Johnson inverse / scikit-learn",
    "median-mad": "median and MAD, 100 columns, one thread / SciPy",
    "2000 x 500, 30 % missing, rank 5, cd": "matrix completion, 2,000 x 500 / cmfrec",
    "joint fit": "joint fit of 5 columns / BFGS of SciPy",
}
#: of the theme
INKS, PAGES = {"light": "#222832", "dark": "#ced6dd"}, {"light": "#ffffff", "dark": "#14181e"}
OURS, PEER = "#0072B2", "#999999"


def before_after():
    """Histograms and QQ plots of the two columns of the home page, as they are and transformed, a row each."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(10.0, 0.6, size=1000), -rng.gamma(3.0, 1.0, size=1000)])
    fit = pk.fit(X, column_names=["income", "balance"])
    figure, axes = plt.subplots(2, 2, figsize=(6.6, 5.2), layout="constrained")
    before_after_plot(X, fit, ax=axes)
    return figure


def speed():
    """What a fit costs, from `cost_by_length.csv`."""
    with (HERE / "cost_by_length.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    rows = [row for row in rows if row["job"] == "fit" and row["family"] == "yeo-johnson" and row["n"] == "10000"]
    cost = {row["library"].split(",")[0]: float(row["ns"]) for row in reversed(rows)}
    names = ["powerkern", "scikit-learn", "SciPy"]
    figure, ax = plt.subplots(figsize=(5.2, 2.2), layout="constrained")
    bars = ax.barh(names, [cost[name] for name in names], color=[OURS, PEER, PEER])
    ax.bar_label(bars, [f"{cost[name]:,.0f} ns" for name in names], padding=4)
    ax.set(xlim=(0, 1.2 * max(cost[name] for name in names)), title="Yeo-Johnson fit: time per value, one thread")
    return _bare(figure, ax)


def accuracy():
    """How many reference columns are right, from docs/benchmarks/accuracy.inc."""
    table = (TABLES / "accuracy.inc").read_text(encoding="utf-8")
    found = re.findall(r"collected reference values\n +- (\S+)\n +- ([\d.]+)%", table)
    right = {name.replace("scipy", "SciPy"): float(share) for name, share in found}
    figure, ax = plt.subplots(figsize=(5.2, 2.2), layout="constrained")
    bars = ax.barh(list(right), list(right.values()), color=[OURS, PEER, PEER])
    ax.bar_label(bars, [f"{share:g} %" for share in right.values()], padding=4)
    ax.set(xlim=(0, 118), title="columns with lambda right to 1e-10 (of 134)")
    return _bare(figure, ax)


def peers():
    """How many times as fast as others, from the tables."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(TABLES.glob("*.inc")))
    rows = re.findall(r"   \* - (.*)\n     - ?.*\n     - ?(.*) x\n", text)
    times = {label: float(next(x for name, x in rows if name.startswith(key))) for key, label in OVER_PEERS.items()}
    figure, ax = plt.subplots(figsize=(5.6, 5.4), layout="constrained")
    bars = ax.barh(list(times), list(times.values()), color=OURS, height=0.35)
    ax.bar_label(bars, [f"{x:,.3g}" if x < 1000 else f"{x:,.0f}" for x in times.values()], padding=4)
    _bare(figure, ax)
    for y, label in enumerate(times):  # above its bar: beside it there is no room on a telephone
        ax.text(1.0, y - 0.22, label, va="bottom")
    ax.set(xscale="log", xlim=(1, 4e4), yticks=[], xlabel="times as fast as the peer (log scale)")
    ax.tick_params(bottom=True, labelbottom=True)
    return figure


def chunks():
    """Parts of a table, the sketch of each, their sum, the fit."""
    figure, ax = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
    ax.set(xlim=(-1, 101), ylim=(0, 40))
    ax.axis("off")

    def box(x, y, text, color, width=18.0, height=9.0):
        ax.add_patch(
            plt.Rectangle((x, y - height / 2), width, height, facecolor="none", edgecolor=color, linewidth=1.5)
        )
        ax.text(x + width / 2, y, text, ha="center", va="center")

    def arrow(start, end):
        ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": PEER, "linewidth": 1.2})

    for y, rows in ((34.0, "4,000,000 rows"), (20.0, "50 rows"), (6.0, "700,000 rows")):
        box(0.0, y, rows, PEER, width=21.0)
        box(31.0, y, "10 kB", OURS, width=12.0)
        arrow((21.5, y), (30.5, y))
        arrow((43.5, y), (55.5, 20.0 + (y - 20.0) / 7.0))
    box(56.0, 20.0, "10 kB", OURS, width=12.0)
    box(79.0, 20.0, "fit of all rows", OURS, width=21.0)
    arrow((68.5, 20.0), (78.5, 20.0))
    for x, text in ((10.5, "read chunk by chunk"), (37.0, "sketches, a column"), (62.0, "their sum")):
        ax.text(x, 40.0, text, ha="center", va="bottom")
    return figure


def _bare(figure, ax):
    ax.invert_yaxis()
    ax.tick_params(left=False, bottom=False, labelbottom=False, which="both")
    ax.spines[:].set_visible(False)
    return figure


for mode, ink in INKS.items():
    colors = dict.fromkeys(
        ["text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "axes.titlecolor"], ink
    )
    with plt.rc_context(colors | {"font.size": 10, "svg.hashsalt": "powerkern", "axes.facecolor": PAGES[mode]}):
        for draw, kind in ((before_after, "png"), (speed, "svg"), (accuracy, "svg"), (peers, "svg"), (chunks, "svg")):
            metadata = {"Date": None} if kind == "svg" else None
            path = HERE / f"{draw.__name__}_{mode}.{kind}"
            draw().savefig(path, dpi=130, transparent=True, metadata=metadata)

before_after().savefig(HERE / "before_after.png", dpi=100)  # the README's
