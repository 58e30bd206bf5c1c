"""Transformers and predictors that follow the conventions of scikit-learn."""

from __future__ import annotations

try:
    import sklearn as sklearn
except ModuleNotFoundError as error:
    raise ImportError("powerkern.sklearn needs scikit-learn: pip install scikit-learn") from error

from powerkern.sklearn.cellwise import DDC, WrappingTransformer
from powerkern.sklearn.grouped import GroupedPowerTransformer
from powerkern.sklearn.imputer import UVImputer
from powerkern.sklearn.location_scaler import LocationScaler
from powerkern.sklearn.outliers import OutlierProbability
from powerkern.sklearn.power_transformer import PowerTransformer
from powerkern.sklearn.regressor import PowerTransformedRegressor
from powerkern.sklearn.supervised.estimator import SupervisedPowerTransformer
from powerkern.sklearn.supervised.predictors import PowerTransformedClassifier

__all__ = [
    "DDC",
    "GroupedPowerTransformer",
    "LocationScaler",
    "OutlierProbability",
    "PowerTransformedClassifier",
    "PowerTransformedRegressor",
    "PowerTransformer",
    "SupervisedPowerTransformer",
    "UVImputer",
    "WrappingTransformer",
]


def __dir__() -> list[str]:
    return sorted(__all__)
