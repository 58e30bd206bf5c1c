"""Compute scores of Gaussian naive Bayes without fitting it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from powerkern._typing import FloatArray
from powerkern.sklearn.supervised.columns import TransformedColumns
from powerkern.sklearn.supervised.objective import Objective, ScoringTask, Split


class NaiveBayes(Objective):
    """Accuracy of Gaussian naive Bayes, computed from moments of the columns instead of fits of `GaussianNB`.

    The log-likelihood is a sum over columns, and a trial replaces one term. The smoothing, `var_smoothing` times the
    largest variance, couples the columns; if a trial changes it, the other terms are summed again. The order of
    summation differs from that in `GaussianNB`. If rounding could decide between two classes, the classifier is
    therefore fitted.

    Parameters
    ----------
    task : ScoringTask
        The estimator, its data and its scoring.
    columns : TransformedColumns
        The transformed columns.
    """

    def __init__(self, task: ScoringTask, columns: TransformedColumns):
        self._columns = columns
        self._estimator = task.estimator
        self._y = task.y
        self._parts = [_Part(task.estimator, task.y, split) for split in task.splits]

    def score_candidates(self, lmbdas: FloatArray, j: int, candidates: FloatArray) -> FloatArray:
        """Return the scores, (k,), of the lambdas with entry `j` replaced by each of k candidates."""
        others = np.delete(np.arange(lmbdas.size), j)
        pairs = np.append(others, np.full(candidates.size, j)), np.append(lmbdas[others], candidates)
        fixed, trials = np.split(self._columns.get(*pairs), [others.size])
        of_fixed, of_trials = np.split(self._columns.cache.get("moments", *pairs, self._moments), [others.size])
        accuracies = []
        for k, part in enumerate(self._parts):
            right, unsure = part.predict_trials(fixed, of_fixed[:, k], trials, of_trials[:, k])
            accuracies.append(right.mean(axis=1))
            for trial in np.flatnonzero(unsure):
                accuracies[k][trial] = self._refit_score(part, np.insert(fixed, j, trials[trial], axis=0).T)
        return np.asarray(np.mean(accuracies, axis=0))

    def _moments(self, which: NDArray[np.intp], lmbdas: FloatArray) -> FloatArray:
        """Return the moments of columns in all splits, (k, splits, 1 + 2 classes); see `_Part.moments`.

        `which` and `lmbdas` are as in `TransformedColumns.get`.
        """
        columns = self._columns.get(which, lmbdas)
        return np.stack([part.moments(columns) for part in self._parts], axis=1)

    def _refit_score(self, part: _Part, Z: FloatArray) -> float:
        """Fit the classifier in one split, and return its score; `Z`, (n, p), holds the transformed columns."""
        train, test = part.split
        Z = np.ascontiguousarray(Z)
        return float(clone(self._estimator).fit(Z[train], self._y[train]).score(Z[test], self._y[test]))


class _Part:
    """The computations of `NaiveBayes` for one split into training and test rows."""

    def __init__(self, estimator: GaussianNB, y: Any, split: Split) -> None:
        classes, codes = np.unique(y, return_inverse=True)
        self.split = split
        train, test = split
        self._smoothing = estimator.var_smoothing
        self._members = [train[codes[train] == c] for c in range(classes.size)]
        self._truth = codes[test]
        counts = np.array([rows.size for rows in self._members])
        priors = counts / counts.sum() if estimator.priors is None else np.asarray(estimator.priors, dtype=np.float64)
        with np.errstate(divide="ignore"):
            self._log_priors = np.log(priors)

    def moments(self, columns: FloatArray) -> FloatArray:
        """Return the moments of columns over the training rows, (k, 1 + 2 classes).

        They are the variance, the mean in each class, and the variance in each class. `columns`, (k, n), holds a column
        in each row.
        """
        whole = _variance(columns[:, self.split[0]])[:, np.newaxis]
        seen = [columns[:, rows] for rows in self._members]
        means = [_mean(part) if part.size else np.zeros(len(columns)) for part in seen]
        variances = [
            _variance(part) if part.size else np.ones(len(columns)) for part in seen
        ]  # empty classes have prior 0
        return np.hstack([whole, np.column_stack(means), np.column_stack(variances)])

    def predict_trials(
        self, fixed: FloatArray, of_fixed: FloatArray, trials: FloatArray, of_trials: FloatArray
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Predict the test rows in each trial.

        Parameters
        ----------
        fixed : (p - 1, n) ndarray
            The columns that are not varied, as rows.
        of_fixed : (p - 1, 1 + 2 classes) ndarray
            The moments of these columns.
        trials : (k, n) ndarray
            The varied column, transformed with each candidate lambda.
        of_trials : (k, 1 + 2 classes) ndarray
            The moments of these transformed columns.

        Returns
        -------
        right : (k, test rows) ndarray of bool
            Whether the prediction is correct.
        unsure : (k,) ndarray of bool
            Whether rounding could change a prediction of the trial.
        """
        test = self.split[1]
        fixed, trials = fixed[:, test], trials[:, test]
        smoothing = self._smoothing * np.maximum(of_fixed[:, 0].max(), of_trials[:, 0])
        right = np.empty(trials.shape, dtype=np.bool_)
        unsure = np.empty(len(trials), dtype=np.bool_)
        for epsilon in np.unique(smoothing):
            at = smoothing == epsilon
            sums, sizes = self._sums(fixed, of_fixed, epsilon)
            terms, size = self._terms(trials[at], of_trials[at], epsilon)
            bound = 4.0 * (len(fixed) + 8) * np.finfo(np.float64).eps
            right[at], near = _is_likeliest(terms + sums, self._truth, sizes.sum() + size, bound)
            unsure[at] = near
        return right, unsure

    def _sums(self, columns: FloatArray, moments: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Return the log-posteriors, (classes, test rows), summed over columns, and the sizes of the constants.

        The size of a column, (k,), is the largest absolute value over classes of the constant term of its log-density.
        Arguments are as in `_class_densities`.
        """
        total = np.empty((self._log_priors.size, columns.shape[1]))
        sizes = np.zeros(len(columns))
        for c, log_prior in enumerate(self._log_priors):
            terms, constant = self._class_densities(c, columns, moments, epsilon)
            total[c] = terms.sum(axis=0) + log_prior
            sizes = np.maximum(sizes, abs(constant))
        return total, sizes

    def _terms(self, columns: FloatArray, moments: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Return the log-densities, (k, classes, test rows), and the sizes of the constants; see `_sums`."""
        each = [self._class_densities(c, columns, moments, epsilon) for c in range(self._log_priors.size)]
        sizes = np.max([abs(constant) for _, constant in each], axis=0)
        return np.stack([terms for terms, _ in each], axis=1), sizes

    def _class_densities(
        self, c: int, columns: FloatArray, moments: FloatArray, epsilon: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the log-densities of each column in a class, (k, n), and their terms that do not depend on x, (k,).

        Parameters
        ----------
        c : int
            Position of the class.
        columns : (k, n) ndarray
            Columns, as rows.
        moments : (k, 1 + 2 classes) ndarray
            The moments of the columns.
        epsilon : float
            Smoothing, which is added to variances.
        """
        n_classes = self._log_priors.size
        mean, variance = moments[:, 1 + c], moments[:, 1 + n_classes + c] + epsilon
        with np.errstate(divide="ignore", invalid="ignore"):  # NaN if no column varies in this split, as in GaussianNB
            constant = -0.5 * np.log(2.0 * np.pi * variance)
            terms = columns - mean[:, np.newaxis]
            terms *= terms
            terms /= -2.0 * variance[:, np.newaxis]
            terms += constant[:, np.newaxis]
        return terms, constant


def _is_likeliest(
    log_likelihoods: FloatArray, truth: NDArray[np.intp], sizes: FloatArray, bound: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare the log-likelihood of the true class with the largest one of the other classes.

    Parameters
    ----------
    log_likelihoods : (trials, classes, rows) ndarray
        The log-likelihoods; overwritten.
    truth : (rows,) ndarray of int
        The true class of each row.
    sizes : (trials,) ndarray
        Sizes of the constants in the log-likelihoods.
    bound : float
        Rounding error of the log-likelihoods, relative to their size and to `sizes`.

    Returns
    -------
    is_likeliest : (trials, rows) ndarray of bool
        Whether the true class has the largest log-likelihood.
    is_unsure : (trials,) ndarray of bool
        Whether rounding may have decided a row of the trial.
    """
    rows = np.arange(truth.size)
    own = log_likelihoods[:, truth, rows]
    log_likelihoods[:, truth, rows] = -np.inf
    rival = log_likelihoods.max(axis=1)
    with np.errstate(invalid="ignore"):
        apart = abs(own - rival) > bound * (abs(rival) + 2.0 * sizes[:, np.newaxis])
    return own > rival, ~apart.all(axis=1)


def _mean(rows: FloatArray) -> FloatArray:
    """Return the mean of each row; values are added in the order of GaussianNB, so that results are bit-identical."""
    return np.asarray(np.cumsum(rows, axis=1)[:, -1] / rows.shape[1])


def _variance(rows: FloatArray) -> FloatArray:
    """Return the variance of each row, with divisor n."""
    return _mean((rows - _mean(rows)[:, np.newaxis]) ** 2)
