"""Location and scale of columns, compared with statsmodels, astropy and SciPy; Huber's kernels for a sorted column."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.stats

from powerkern.kernels.location import huber, loc_scale, proposal2
from powerkern.location import location_scale

from ._measure import PEER_COLUMNS, InTurns, exp_units

try:
    import statsmodels.api as statsmodels
except ImportError:
    statsmodels = None
try:
    from astropy import stats as astropy
except ImportError:
    astropy = None

METHODS = [
    "median-mad",
    "median-qn",
    "trimmed",
    "huber",
    "huber-scale",
    "huber-proposal2",
    "bisquare",
    "bisquare-proposal2",
    "biweight",
]
_SHARED = Path(__file__).resolve().parents[2] / "shared/refs"


def contaminated(n: int, p: int) -> np.ndarray:
    """Return normal columns in which a tenth of the values are distant outliers."""
    rng = np.random.default_rng(20240601)
    x = rng.normal(size=(n, p))
    x[rng.random((n, p)) < 0.1] += 8.0
    return x


def _statsmodels_huber(x: np.ndarray) -> Any:
    return [statsmodels.robust.scale.Huber()(column) for column in x.T]


def _astropy_biweight(x: np.ndarray) -> Any:
    return astropy.biweight_location(x, axis=0), astropy.biweight_scale(x, axis=0)


def _scipy_mad(x: np.ndarray) -> Any:
    return np.median(x, axis=0), scipy.stats.median_abs_deviation(x, axis=0, scale="normal")


#: By method: the peer's name, whether it is installed, and a function that it applies to each column.
PEERS: dict[str, tuple[str, bool, Callable[[np.ndarray], Any]]] = {
    "median-mad": ("scipy", True, _scipy_mad),
    "huber-proposal2": ("statsmodels", statsmodels is not None, _statsmodels_huber),
    "biweight": ("astropy", astropy is not None, _astropy_biweight),
}


class OneThread(InTurns):
    """Time for a matrix on one thread, including the sort, in passes of np.exp; and the speedup by a second thread."""

    params = (["median-mad", "huber-proposal2", "biweight"], ["C"], [10_000], [100])
    param_names = ("method", "order", "n", "p")

    def setup(self, method: str, order: str, n: int, p: int) -> None:
        self.x = np.asarray(contaminated(n, p), order=order)
        self.out = np.empty_like(self.x)
        location_scale(self.x[:, :8], method)  # compiles

    def track_exp_units(self, method: str, order: str, n: int, p: int) -> float:
        calls = {
            "powerkern": lambda: location_scale(self.x, method, n_threads=1),
            "np.exp": lambda: np.exp(self.x, out=self.out),
        }
        self.compare(calls)
        return self.ratio("powerkern", "np.exp")

    def track_thread_scaling(self, method: str, order: str, n: int, p: int) -> float:
        """Track the speedup of two threads over one."""
        one, two = (
            lambda: location_scale(self.x, method, n_threads=1),
            lambda: location_scale(self.x, method, n_threads=2),
        )
        self.compare({"one thread": one, "two threads": two})
        return self.ratio("one thread", "two threads")


class Peers(InTurns):
    """Speed relative to a peer, both on one thread; the peer's time is extrapolated from PEER_COLUMNS columns."""

    params = (list(PEERS), [10_000], [100])
    param_names = ("method", "n", "p")

    def setup(self, method: str, n: int, p: int) -> None:
        if not PEERS[method][1]:
            raise NotImplementedError
        self.x = contaminated(n, p)
        self.few = np.ascontiguousarray(self.x[:, :PEER_COLUMNS])
        location_scale(self.few, method)  # compiles

    def track_speedup(self, method: str, n: int, p: int) -> float:
        name, _, peer = PEERS[method]
        self.compare({"powerkern": lambda: location_scale(self.x, method, n_threads=1), name: lambda: peer(self.few)})
        return p / PEER_COLUMNS * self.ratio(name, "powerkern")


class Short:
    """Seconds to estimate location and scale of 500 columns of 180 values."""

    params = (["median-mad", "huber-proposal2"],)
    param_names = ("method",)

    def setup(self, method: str) -> None:
        self.x = contaminated(180, 500)
        location_scale(self.x, method)  # compiles

    def time_columns(self, method: str) -> None:
        location_scale(self.x, method)


# --- kernels ------------------------------------------------------------------------------------------


@numba.njit(error_model="numpy")
def _huber(y: np.ndarray, w: np.ndarray) -> loc_scale.LocScale:
    return huber.huber(y, w, 1.5)


@numba.njit(error_model="numpy")
def _one_step(y: np.ndarray, w: np.ndarray) -> loc_scale.LocScale:
    return huber.sorted_one_step(y, w, 1.5, huber.CELLWISE_BETA)


@numba.njit(error_model="numpy")
def _proposal2(y: np.ndarray, w: np.ndarray) -> loc_scale.LocScale:
    return proposal2.sorted_huber_proposal2(y, w, 1.5, 1.5)


#: Each is compiled separately, because asv runs every parameter in a separate process.
ESTIMATORS = {"huber": _huber, "huber_one_step": _one_step, "huber_proposal2": _proposal2}


def _estimate(estimator: str, y: np.ndarray) -> loc_scale.LocScale:
    return ESTIMATORS[estimator](y, y[:0])


class Sorted:
    """Time of Huber's estimators for one sorted column, in passes of np.exp, including the call from Python."""

    params = (list(ESTIMATORS), [10_000])
    param_names = ("estimator", "n")

    def setup(self, estimator: str, n: int) -> None:
        self.y = np.sort(contaminated(n, 1)[:, 0])

    def track_exp_passes(self, estimator: str, n: int) -> float:
        return exp_units(lambda: _estimate(estimator, self.y), n)

    track_exp_passes.unit = "np.exp passes"  # type: ignore[attr-defined]


# --- accuracy -----------------------------------------------------------------------------------------


class Reference(NamedTuple):
    """A method with its constants, and the part of its results that refs/mestimator_reference.json has."""

    method: str
    constants: dict[str, float]
    #: 0: location, 1: scale, None: both
    part: int | None
    library: bool = False


REFERENCES = {
    "median": Reference("median-mad", {}, 0),
    "nmad": Reference("median-mad", {}, 1),
    "niqr_type7": Reference("median-niqr", {}, 1),
    "huber_location_k1.345": Reference("huber", {"k": 1.345}, 0),
    "huber_location_k1.5": Reference("huber", {}, 0),
    "tukey_location_c4.685": Reference("bisquare", {}, 0),
    "huber_scale_med_k1.345": Reference("huber-scale", {"k": 1.345}, 1),
    "huber_scale_med_k1.5": Reference("huber-scale", {}, 1),
    "huber_scale_med_k2.5_ddof1": Reference("huber-scale", {"k": 2.5, "ddof": 1}, 1),
    "proposal2_k1.345": Reference("huber-proposal2", {"k": 1.345}, None),
    "proposal2_k1.5": Reference("huber-proposal2", {}, None),
    "sm_huberT_prop2": Reference("huber-proposal2", {"k_location": 1.345}, None),
    "sm_tukey_prop2": Reference("bisquare-proposal2", {}, None),
    "astropy.biweight_location(c=6)": Reference("biweight", {}, 0, library=True),
    "astropy.biweight_scale(c=9)": Reference("biweight", {}, 1, library=True),
}


def _read(file: str) -> Any:
    """Read reference values; skip the benchmark if they are not available."""
    path = _SHARED / file
    if not path.exists():
        raise NotImplementedError
    return json.loads(path.read_text())


class Accuracy:
    """Largest relative error of a method over the vectors of refs/mestimator_reference.json with a positive scale."""

    params = (list(REFERENCES),)
    param_names = ("value",)

    def setup(self, value: str) -> None:
        self.vectors = _read("mestimator_reference.json")["vectors"].values()

    def track_worst(self, value: str) -> float:
        reference, worst = REFERENCES[value], 0.0
        for vector in self.vectors:
            if vector["exact"]["nmad"] > 0.0:
                pair = np.ravel(location_scale(vector["x"], reference.method, **reference.constants))
                found = pair if reference.part is None else pair[reference.part]
                expected = np.array(vector["library" if reference.library else "exact"][value])
                worst = max(worst, float(np.max(abs(found / expected - 1.0))))
        return worst


class OneStep:
    """Largest relative difference from R's one-step Huber estimates in refs/cellwise/units.json."""

    def setup(self) -> None:
        self.records = _read("cellwise/units.json")["huber"]

    def track_worst(self) -> float:
        worst = 0.0
        for record in self.records:
            y = np.sort(record["x"])
            found = _estimate("huber_one_step", y)
            for value, expected in zip(found[:2], (record["huber_loc"], record["huber_scale"]), strict=True):
                worst = max(worst, abs(value / expected - 1.0))
        return worst


class Identity:
    """Number of results that change in any bit with the number of threads, memory order, or order of columns."""

    params = (["median-mad", "huber-proposal2"],)
    param_names = ("method",)

    def track_differences(self, method: str) -> int:
        x = contaminated(2_000, 60)
        expected = np.array(location_scale(x, method, n_threads=1))
        others = [location_scale(y, method, n_threads=t) for y in (x, np.asfortranarray(x)) for t in (1, 2, 8)]
        turned = np.array(location_scale(x[:, ::-1], method))[:, ::-1]
        return int(sum(np.sum(np.array(other) != expected) for other in (*others, turned)))
