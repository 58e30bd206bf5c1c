"""powerkern: exact, fast power transforms for wide numeric tables."""

from importlib.metadata import PackageNotFoundError, version

from powerkern._status import Status
from powerkern.fitting import PowerFit, fit, inverse_transform, transform

try:
    __version__ = version("powerkern")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "0+unknown"

__all__ = ["PowerFit", "Status", "__version__", "fit", "inverse_transform", "transform"]
