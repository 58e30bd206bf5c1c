"""Draws cost_by_length.csv, which asv_benches.report_lengths has measured: python docs/images/cost_by_length.py."""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

# Okabe and Ito's colors, which the color-blind tell apart; markers say the same once more
STYLES = [("#0072B2", "o"), ("#56B4E9", "s"), ("#D55E00", "^"), ("#009E73", "D")]
DASHES = {"yeo-johnson": "-", "box-cox": "--"}

path = Path(__file__)
lines = defaultdict(list)
with path.with_suffix(".csv").open(encoding="utf-8") as file:
    for row in csv.DictReader(line for line in file if not line.startswith("#")):
        lines[row["job"], row["library"], row["family"]].append((int(row["n"]), float(row["ns"])))
styles = dict(zip(dict.fromkeys(library for _, library, _ in lines), STYLES, strict=False))

plt.rcParams.update({"font.size": 9, "axes.grid": True, "grid.color": "0.9", "axes.axisbelow": True})
figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.8), sharey=True, layout="constrained")
for ax, job in zip(axes, ("fit", "transform"), strict=True):
    for (done, library, family), points in lines.items():
        if done == job:
            color, marker = styles[library]
            ax.loglog(*zip(*points, strict=True), DASHES[family], color=color, marker=marker, ms=3.5, lw=1.4)
    ax.set(title=job, xlabel="values in a column")
axes[0].set_ylabel("ns a value, one thread")
keys = [Line2D([], [], color=color, marker=marker, ms=4, label=name) for name, (color, marker) in styles.items()]
keys += [Line2D([], [], color="0.3", ls=dash, label=family) for family, dash in DASHES.items()]
figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
figure.savefig(path.with_suffix(".png"), dpi=150)
