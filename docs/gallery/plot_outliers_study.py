"""
Which rule makes the best outlier probabilities?
================================================

Röchner et al. (2024) compared rules that turn outlier scores into probabilities, over many detectors and data sets, by
the harmonic improvement score of errors measured on outliers and inliers apart; mean + nMAD came out best. Here is a
small study of that kind, on data that scikit-learn brings along and some simulated ones.
"""

# %%
# Data and detectors
# ------------------
# One class of each labelled data set is made rare, about 5 % of the rows. High scores are outliers, so scikit-learn's
# change their sign.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata, skew
from sklearn import datasets
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.preprocessing import scale
from sklearn.svm import OneClassSVM

from powerkern.outliers import brier_score, harmonic_improvement_score, outlier_probability, stratified_errors

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def one_class_rare(loader, rare, share=0.05):
    X, y = loader(return_X_y=True)
    inliers, outliers = np.flatnonzero(y != rare), np.flatnonzero(y == rare)
    kept = rng.choice(outliers, max(4, int(share * inliers.size)), replace=False)
    rows = np.concatenate([inliers, kept])
    return scale(X[rows]), (y[rows] == rare).astype(int)


def simulated(inliers, outliers):
    return scale(np.vstack([inliers, outliers])), np.repeat([0, 1], [len(inliers), len(outliers)])


DATA = {
    "iris": one_class_rare(datasets.load_iris, 0),
    "wine": one_class_rare(datasets.load_wine, 2),
    "breast cancer": one_class_rare(datasets.load_breast_cancer, 0),
    "digits": one_class_rare(lambda return_X_y: datasets.load_digits(n_class=4, return_X_y=return_X_y), 0),
    "normal, spread outliers": simulated(rng.normal(size=(475, 5)), rng.uniform(-6, 6, size=(25, 5))),
    "normal, clustered outliers": simulated(rng.normal(size=(475, 5)), rng.normal(4, 0.3, size=(25, 5))),
    "lognormal": simulated(rng.lognormal(size=(475, 3)), rng.lognormal(2.5, 0.3, size=(25, 3))),
    "many outliers (25 %)": simulated(rng.normal(size=(375, 5)), rng.uniform(-6, 6, size=(125, 5))),
}


def mean_distance(X):
    distances, _ = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()
    return distances.mean(axis=1)


DETECTORS = {
    "kNN": mean_distance,
    "LOF": lambda X: -LocalOutlierFactor(n_neighbors=20).fit(X).negative_outlier_factor_,
    "isolation forest": lambda X: -IsolationForest(n_estimators=30, random_state=0).fit(X).score_samples(X),
    "one-class SVM": lambda X: -OneClassSVM(nu=0.2).fit(X).score_samples(X),
    "robust covariance": lambda X: -EllipticEnvelope(support_fraction=0.8, random_state=0).fit(X).score_samples(X),
}

# %%
# Rules
# -----
# The gamma rule needs scores with a positive mean, so it is left out.

RULES = {
    "linear": {"method": "linear"},
    "Huber": {"method": "huber"},
    "Tukey": {"method": "tukey"},
    "Yeo-Johnson, ML": {"method": "yeo-johnson", "estimator": "mle"},
    "Yeo-Johnson, robust": {"method": "yeo-johnson"},
} | {f"{c} + {s}": {"center": c, "scale": s} for c in ("mean", "median", "trimmed") for s in ("sd", "nmad", "niqr")}

# %%
# Ranks
# -----
# Rank 1 is best. A detector that ranks outliers hardly better than chance (AUC below 0.6) has nothing to scale and is
# left out.

rows, ranks, skewness, flagged, briers = [], [], [], [], []
for data, (X, y) in DATA.items():
    for detector, score in DETECTORS.items():
        scores = score(X)
        if roc_auc_score(y, scores) < 0.6:
            continue
        p = np.column_stack([outlier_probability(scores, **rule) for rule in RULES.values()])
        ranks.append(rankdata(harmonic_improvement_score(stratified_errors(y, p))))
        rows.append((data, detector))
        skewness.append(skew(scores[y == 0]))
        flagged.append([(p[y == label] > 0.5).mean(axis=0) for label in (1, 0)])
        briers.append(brier_score(y, p))
ranks = np.array(ranks)
order = np.argsort(ranks.mean(axis=0))
names = np.array(list(RULES))
print(f"{len(rows)} combinations of data and detector; 'above 1/2' is the share given a probability above 1/2")
print("                     mean rank   outliers above 1/2   inliers above 1/2   mean Brier score")
for j in order:
    outliers, inliers = np.mean(flagged, axis=0)[:, j]
    print(
        f"{names[j]:20s} {ranks[:, j].mean():9.2f} {outliers:20.0%} {inliers:19.0%} {np.mean(briers, axis=0)[j]:18.3f}"
    )

# %%
# Where it holds, and where not
# -----------------------------

default = list(RULES).index("mean + nmad")
for data in DATA:
    part = ranks[[row[0] == data for row in rows]]
    if part.size:
        means = part.mean(axis=0)
        print(f"{data:28s} mean + nMAD {means[default]:5.2f}   best: {names[np.argmin(means)]} {means.min():.2f}")

fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
axes[0].boxplot(ranks[:, order], orientation="horizontal", tick_labels=names[order])
axes[0].invert_yaxis()
axes[0].set_xlabel("rank of the harmonic improvement score")
axes[1].scatter(skewness, ranks[:, default])
axes[1].set_xlabel("skewness of the inliers' scores")
axes[1].set_ylabel("rank of mean + nMAD")

# %%
# What this shows
# ---------------
# - The published finding holds on average: mean + nMAD has the best mean rank, also with 25 % of outliers. It
#   finds nearly as many outliers as the rules centered at the median or at a trimmed mean, and alarms for half as
#   many inliers.
# - It does not hold everywhere. Where outliers are few and far off (normal, spread outliers), the classical mean +
#   sd finds them as well and ranks first; lognormal data and the smallest sets (iris, wine) favour the median.
# - The score rewards extremes: an error of exactly 0, such as that of outliers that all get probability 1, wins
#   against everything else. By the Brier score, which counts the many inliers, rules that decide less do better: linear
#   scaling and mean + sd, which miss the most outliers. Look at the errors themselves before relying on a rank.
# - The power transform route makes probabilities that are graded where the others jump to 1, and ranks last here for
#   that reason: its Brier score is that of mean + nMAD. The robust fit is better than maximum likelihood, which takes
#   outliers for skewness and draws them towards the others.
