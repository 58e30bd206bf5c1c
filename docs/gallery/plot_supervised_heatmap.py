"""
Map the accuracy of a classifier over two lambdas
=================================================

The cross-validated accuracy of naive Bayes on two columns, for every pair of lambdas, and where maximum likelihood lies
on that map.
"""

# %%
# Every pair of lambdas
# ---------------------
# Two skewed columns of the breast-cancer data; a grid of 61 x 61 lambdas, each pair scored by 5-fold cross-validation.

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powerkern.plot import lambda_map
from powerkern.sklearn import SupervisedPowerTransformer

data = load_breast_cancer()
names = ["area error", "worst concave points"]
X = data.data[:, [list(data.feature_names).index(name) for name in names]]
y = data.target

grid = np.linspace(-20.0, 10.0, 61)
tuned = SupervisedPowerTransformer(GaussianNB(), search="grid", lmbdas=grid).fit(X, y)
likely = SupervisedPowerTransformer(GaussianNB(), starts="mle", max_epochs=0).fit(X, y)
print(f"best pair {tuned.lambdas_}: accuracy {tuned.best_score_:.4f}")
print(f"maximum likelihood {likely.lambdas_.round(2)}: accuracy {likely.best_score_:.4f}")

# %%
# The map
# -------
# The accuracy is a step function of the lambdas, with a broad plateau: many pairs are as good as the best to within a
# few of the 569 patients.

ax = lambda_map(
    tuned.grid_scores_, tuned.grid_lambdas_, marks={"maximum likelihood": likely.lambdas_, "none": (1.0, 1.0)}
)
ax.set(xlabel=f"lambda of {names[0]}", ylabel=f"lambda of {names[1]}")
_ = ax.figure.suptitle("Accuracy of naive Bayes")

# %%
# Is the best pair worth it?
# --------------------------
# The best of 3721 scores is too optimistic. Unbiased accuracies come from data that the search has not seen: tenfold
# cross-validation of whole pipelines, repeated twice, with the lambdas found again in each fold.

folds = RepeatedStratifiedKFold(n_splits=10, n_repeats=2, random_state=0)
coarse = np.linspace(-20.0, 10.0, 31)
candidates = {
    "standardised only": StandardScaler(),
    "maximum likelihood": SupervisedPowerTransformer(GaussianNB(), starts="mle", max_epochs=0),
    "best pair of a grid": SupervisedPowerTransformer(GaussianNB(), search="grid", lmbdas=coarse),
}
accuracies = {
    name: cross_val_score(make_pipeline(transformer, GaussianNB()), X, y, cv=folds)
    for name, transformer in candidates.items()
}
for name, values in accuracies.items():
    print(f"{name:20s} {values.mean():.4f}")
difference = accuracies["best pair of a grid"] - accuracies["maximum likelihood"]
error = difference.std(ddof=1) / np.sqrt(difference.size)
print(f"best pair less maximum likelihood: {difference.mean():+.4f}, standard error {error:.4f}")
