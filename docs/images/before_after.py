"""Draws the picture of the README: python docs/images/before_after.py."""

from pathlib import Path

import numpy as np

import powerkern as pk
from powerkern.plot import before_after_plot

rng = np.random.default_rng(0)
X = np.column_stack([rng.lognormal(size=1000), -rng.gamma(3.0, size=1000)])
fit = pk.fit(X, column_names=["skewed to the right", "skewed to the left"])
figure = before_after_plot(X, fit)[0, 0].figure
figure.savefig(Path(__file__).with_suffix(".png"), dpi=100)
