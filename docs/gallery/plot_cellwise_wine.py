"""
Find cells that are wrong in their row
======================================

A few cells of scikit-learn's wine data are exchanged between wines: every value is ordinary in its column, but wrong in
its row. Detecting deviating cells (Rousseeuw and Van den Bossche 2018) compares each cell with its prediction from the
other cells of the row.
"""

# %%
# Cells exchanged
# ---------------
# Twenty times, two wines swap their values in one column, in which they differ by at least three standard deviations.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from powerkern.cellwise import ddc, wrapped_correlation, wrapped_pca
from powerkern.plot import cell_map, outlier_map

wine = load_wine(as_frame=True)
X = wine.data.drop(columns="malic_acid").copy()
rng = np.random.default_rng(0)
exchanged = np.zeros(X.shape, dtype=bool)
while exchanged.sum() < 40:
    j = rng.integers(X.shape[1])
    a, b = rng.integers(len(X), size=2)
    if abs(X.iat[a, j] - X.iat[b, j]) > 3.0 * X.iloc[:, j].std() and not exchanged[[a, b]].any():
        X.iat[a, j], X.iat[b, j] = float(X.iat[b, j]), float(X.iat[a, j])
        exchanged[[a, b], j] = True

# %%
# Found by their rows
# -------------------
# Judged by its column alone, one exchanged cell in five stands out. Judged by the other cells of its row, three in four
# do.

fit = ddc(X, min_correlation=0.3)
alone = ddc(X, min_correlation=1.0)
for label, found in (("by the column alone", alone), ("by the other cells of the row", fit)):
    flagged = found.flagged.to_numpy()
    share, others = flagged[exchanged].mean(), flagged[~exchanged].mean()
    print(f"{label:30s} flags {share:4.0%} of the exchanged cells, {others:4.1%} of the others")

rows = np.flatnonzero(exchanged.any(axis=1))[:30]
fig, ax = plt.subplots(figsize=(7, 6), layout="constrained")
cell_map(X.iloc[rows], fit, ax=ax)
ax.plot(*np.nonzero(exchanged[rows])[::-1], "ks", ms=9, mfc="none", label="exchanged")
ax.legend(loc="upper left", bbox_to_anchor=(0.0, 1.08))
plt.show()

# %%
# Robust principal components
# ---------------------------
# Distant cells, from a slipped decimal point for instance, ruin classical correlations and components, but not the
# correlations and components of wrapped data.

clean = wine.data.drop(columns="malic_acid")
slipped = clean.to_numpy().copy()
slips = rng.random(slipped.shape) < 0.03
slipped[slips] *= 10.0
for label, correlation in (("classical", np.corrcoef(slipped.T)), ("wrapped", wrapped_correlation(slipped))):
    error = np.abs(correlation - np.corrcoef(clean.T)).mean()
    print(f"{label:10s} mean error of the correlations: {error:.3f}")

outlier_map(slipped, wrapped_pca(slipped, 3), labels=5)
plt.show()
