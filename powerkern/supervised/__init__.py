"""Power transforms whose lambdas are tuned by the score of a classifier or regressor [1]_.

References
----------
.. [1] L. Blum, M. Elgendi, C. Menon, "Impact of Box-Cox transformation on machine-learning algorithms", Frontiers in
   Artificial Intelligence 5, 2022, 877569.
"""

from __future__ import annotations

try:
    from powerkern.supervised.estimator import SupervisedPowerTransformer
    from powerkern.supervised.predictors import Classifier
    from powerkern.supervised.searches import SearchHistory
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise ImportError("powerkern.supervised needs scikit-learn: pip install scikit-learn") from error

__all__ = ["Classifier", "SearchHistory", "SupervisedPowerTransformer"]
