"""
Transform before robust principal components
============================================

Robust principal components assume that most rows are about normal. Skewed columns are not, so rows in their long
tails look like outliers. After a robust transform the columns are normal in the center, and the rows that still stand
out deserve a look (Raymaekers and Rousseeuw 2024, section 4.3, do this for 20,000 stars).
"""

# %%
# Cells in breast tissue
# ----------------------
# Thirty measurements of cell nuclei in each of 569 samples, most of them skewed.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import powerkern as pk
from powerkern.cellwise import wrapped_pca
from powerkern.plot import objective_plot, outlier_map

data = load_breast_cancer()
X, names = data.data, [str(name) for name in data.feature_names]
fit = pk.fit(X, "yeo-johnson", "robust", column_names=names)
before, after = fit.normality()
print("median of |skewness| before and after:", np.median(np.abs([before.skewness, after.skewness]), axis=1).round(2))
print("lambda, quartiles:", np.percentile(fit.lmbda, [25, 50, 75]).round(2))
print(f"outlying cells: {fit.outliers(X).mean():.1%}")

# %%
# Outlier maps
# ------------
# The maps draw distances within the space of the components and distances from it. Points right of the vertical line
# are far out along the components. Points above the horizontal line lie off the space of the components.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
for ax, (label, values) in zip(axes, {"as they are": X, "transformed": fit.transform(X)}.items(), strict=True):
    components = wrapped_pca(values, 4)
    far = components.score_distances > components.score_cutoff
    off = components.orthogonal_distances > components.orthogonal_cutoff
    print(f"{label}: 4 components with {components.explained_variance_ratio.sum():.0%} of the variance")
    shares = {"far out along them": far & ~off, "off them": off & ~far, "both": far & off}
    print("    rows " + ", ".join(f"{where} {which.mean():.1%}" for where, which in shares.items()))
    outlier_map(None, components, labels=0, ax=ax)
    ax.set_title(label)

# %%
# The start of a column
# ---------------------
# The objective that RewML minimises first, for the column with the most outlying cells. A second minimum nearly as
# low would make the start doubtful.

ax = objective_plot(X, fit, column=int(np.argmax(fit.outliers(X).mean(axis=0))))
