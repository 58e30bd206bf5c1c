"""Draws the picture of the README: python docs/images/before_after.py."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import powerkern as pk
from powerkern.plot import qq_plot

rng = np.random.default_rng(0)
X = np.column_stack([rng.lognormal(size=1000), -rng.gamma(3.0, size=1000)])
fit = pk.fit(X, column_names=["skewed to the right", "skewed to the left"])
Z = fit.transform(X)

figure, axes = plt.subplots(1, 4, figsize=(11.0, 2.6), layout="constrained")
for j, (histogram, qq) in enumerate(axes.reshape(2, 2)):
    bins = np.linspace(-4.0, 4.0, 41)
    histogram.hist((X[:, j] - X[:, j].mean()) / X[:, j].std(), bins, color="0.6", alpha=0.8, label="before")
    histogram.hist(Z[:, j], bins, color="C0", alpha=0.6, label="after")
    histogram.set(title=fit.column_names[j], yticks=[], xlabel="standardised value")
    histogram.legend(loc="upper right" if j == 0 else "upper left")
    qq_plot(X, fit, column=j, ax=qq).set(title=f"lambda = {fit.lmbda[j]:.2f}", ylim=(-6.0, 6.0), ylabel="")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=100)
