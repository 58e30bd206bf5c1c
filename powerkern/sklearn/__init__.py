"""Every estimator for scikit-learn, each imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from powerkern._input.foreign import imported_when_used

if TYPE_CHECKING:
    from powerkern.sklearn.cellwise import DDC as DDC
    from powerkern.sklearn.cellwise import Wrapper as Wrapper
    from powerkern.sklearn.grouped import GroupedPowerTransformer as GroupedPowerTransformer
    from powerkern.sklearn.imputer import UVImputer as UVImputer
    from powerkern.sklearn.location_scaler import LocationScaler as LocationScaler
    from powerkern.sklearn.outliers import OutlierProbability as OutlierProbability
    from powerkern.sklearn.power_transformer import PowerTransformer as PowerTransformer
    from powerkern.sklearn.regressor import PowerTransformedRegressor as PowerTransformedRegressor
    from powerkern.supervised import Classifier as Classifier
    from powerkern.supervised import SupervisedPowerTransformer as SupervisedPowerTransformer

#: Estimator -> the module that defines it.
_HOMES = {
    "Classifier": "powerkern.supervised",
    "DDC": "powerkern.sklearn.cellwise",
    "GroupedPowerTransformer": "powerkern.sklearn.grouped",
    "LocationScaler": "powerkern.sklearn.location_scaler",
    "OutlierProbability": "powerkern.sklearn.outliers",
    "PowerTransformedRegressor": "powerkern.sklearn.regressor",
    "PowerTransformer": "powerkern.sklearn.power_transformer",
    "SupervisedPowerTransformer": "powerkern.supervised",
    "UVImputer": "powerkern.sklearn.imputer",
    "Wrapper": "powerkern.sklearn.cellwise",
}

__all__ = list(_HOMES)

__getattr__, __dir__ = imported_when_used(__name__, _HOMES, __all__)
