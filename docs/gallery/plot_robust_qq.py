"""
Show outliers that maximum likelihood hides
===========================================

Raymaekers and Rousseeuw show robust transforms on the data of a car magazine, with electric cars among petrol cars and
sports cars among family cars. Here are simulated cars of that kind: three skewed columns with a few odd cars.
"""

# %%
# Some cars
# ---------
# Fuel economy (miles per gallon) is close to normal but for six electric and hybrid cars; weights (kg) and prices (GBP)
# are skewed, and a few cars are of another kind.

import matplotlib.pyplot as plt
import numpy as np

import powerkern as pk
from powerkern.plot import cell_map, qq_plot

rng = np.random.default_rng(4)
n = 290
mpg = rng.normal(48.0, 11.0, n).clip(14.0)
weight = rng.lognormal(np.log(1450.0), 0.22, n)
price = 9_000.0 + rng.lognormal(np.log(20_000.0), 0.9, n)
mpg[:6] = [235.0, 235.0, 470.0, 117.0, 148.0, 157.0]
weight[6:10] = [210.0, 410.0, 430.0, 550.0]  # a tricycle, a quadricycle and two club racers
price[10:13] = [1_140_000.0, 870_000.0, 760_000.0]
X = np.column_stack([mpg, weight, price])
names = ["MPG", "weight", "price"]

# %%
# Two fits
# --------

fits = {
    "maximum likelihood": pk.fit(X, "box-cox", column_names=names),
    "RewML": pk.fit(X, "box-cox", "robust", column_names=names),
}
for label, fit in fits.items():
    flagged = fit.outliers(X).sum(axis=0)
    text = ", ".join(f"{a} {b:6.3f} ({c} outliers)" for a, b, c in zip(names, fit.lmbda, flagged, strict=True))
    print(f"{label:20s} lambda: {text}")

# %%
# QQ plots, maximum likelihood on the left, RewML on the right. Maximum likelihood bends the center to draw the outliers
# in; RewML keeps the center on the diagonal and leaves the outliers where they belong.

figure, axes = plt.subplots(3, 2, figsize=(7, 9), layout="constrained", sharex=True, sharey=True)
for column, (label, fit) in zip(axes.T, fits.items(), strict=True):
    for ax, name in zip(column, names, strict=True):
        qq_plot(X, fit, column=name, ax=ax)
        ax.set_title(f"{name}, {label}")
        ax.set_ylim(-12, 12)
        ax.label_outer()
        if ax is not axes[0, 1]:
            ax.get_legend().remove()

# %%
# Cut-offs in the units of the data
# ---------------------------------
# A value beyond them is further from the center than 99 % of normal values, on the transformed scale.

robust = fits["RewML"]
for name, low, high in zip(names, *robust.cutoffs(), strict=True):
    print(f"{name:7s} ordinary from {low:9.1f} to {high:10.1f}")

# %%
# The first 40 cars as a map of cells: red is unusually high, blue unusually low.

ax = cell_map(X[:40], robust)
ax.figure.set_size_inches(4, 6)
