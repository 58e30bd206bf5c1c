"""The only imports from private modules of scikit-learn, kept in one place because a release may move them."""

from __future__ import annotations

try:
    from sklearn.base import _fit_context as fit_context
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.utils._param_validation import HasMethods, Interval, MissingValues, StrOptions
    from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
    from sklearn.utils.validation import _check_method_params as check_method_params
    from sklearn.utils.validation import _check_sample_weight as check_sample_weight
except ImportError as error:
    if error.name == "sklearn":
        raise
    import sklearn

    raise ImportError(
        f"scikit-learn {sklearn.__version__} does not have names that this powerkern imports ({error}): install a "
        "newer powerkern, or pip install 'scikit-learn<1.10'"
    ) from error

__all__ = [
    "BaseSearchCV",
    "HasMethods",
    "Interval",
    "MissingValues",
    "StrOptions",
    "check_method_params",
    "check_sample_weight",
    "fit_context",
    "routing_enabled",
]
