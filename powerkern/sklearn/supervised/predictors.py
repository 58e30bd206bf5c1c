"""`PowerTransformedClassifier`: the search for lambdas and its classifier as one estimator."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from powerkern._input.messages import shown
from powerkern.sklearn._compat import check_method_params, fit_context
from powerkern.sklearn.supervised.estimator import SupervisedPowerTransformer
from powerkern.sklearn.tables import SelectedColumns


def _has(method: str) -> Any:
    """Return a decorator that makes a method available only if `estimator` has the method of this name."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class PowerTransformedClassifier(ClassifierMixin, SupervisedPowerTransformer):  # type: ignore[misc]
    """Classifier on power-transformed columns, with lambdas that maximize its score.

    It is equivalent to a pipeline of a `SupervisedPowerTransformer` and its classifier (Algorithms 2 to 4 of [1]_), but
    has one set of parameters, and passes data frames on to the classifier as data frames.

    Parameters
    ----------
    estimator : classifier
        The classifier; a clone is fitted as `estimator_`.
    family, search, scoring, cv, lmbdas, bounds, variables, max_trials, max_epochs, starts
        As in `SupervisedPowerTransformer`.
    restart_every, shuffle_every, refine_every, patience, tol, max_time, progress, n_jobs, random_state, n_threads
        As in `SupervisedPowerTransformer`.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to the transformed training data.
    classes_ : ndarray
        The classes.
    lambdas_, best_score_, history_, power_fit_, ...
        As in `SupervisedPowerTransformer`. ``best_score_`` is the best of many scores and therefore too optimistic;
        cross-validate the classifier instead.

    References
    ----------
    .. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers
       in Artificial Intelligence 5, 2022, 877569, Algorithms 2 to 4.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from powerkern.sklearn import PowerTransformedClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = PowerTransformedClassifier(GaussianNB(), max_epochs=1).fit(X[::2], y[::2])
    >>> round(classifier.score(X[1::2], y[1::2]), 2)
    0.94
    """

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Search for the lambdas, and fit the classifier to the transformed data.

        Arguments are as in `SupervisedPowerTransformer.fit`.
        """
        if not is_classifier(self.estimator):
            raise ValueError(
                f"estimator must be a classifier, got {shown(self.estimator)}; use SupervisedPowerTransformer"
            )
        task = self._tune(X, y, sample_weight, params)
        rows = SelectedColumns(self._transform_rows(X), self._chosen).rows(task.kept).whole
        fit_params = check_method_params(task.y, task.fit_params, task.kept)
        self.estimator_ = clone(self.estimator).fit(rows, task.y[task.kept], **fit_params)
        return self

    def predict(self, X: Any) -> Any:
        """Predict the classes of the rows of `X`."""
        check_is_fitted(self)
        return self.estimator_.predict(self._transform_rows(X))

    def _transform_rows(self, X: Any) -> Any:
        """Return the transformed rows, as a data frame if X is one."""
        table, values = self._read(X, reset=False)
        return table.with_values(self._transformed(values))

    @property
    def classes_(self) -> Any:
        """The classes of the fitted classifier."""
        return self.estimator_.classes_

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes for the rows of `X`, (n, classes)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(self._transform_rows(X))

    @_has("predict_log_proba")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return the log-probabilities of the classes for the rows of `X`, (n, classes)."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(self._transform_rows(X))

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the decision function of the classifier for the rows of `X`."""
        check_is_fitted(self)
        return self.estimator_.decision_function(self._transform_rows(X))
