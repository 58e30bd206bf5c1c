"""Waiting time in a new process: the import, and the first call of each job with and without compiled code on disk."""

from __future__ import annotations

import tempfile

from ._measure import Lap, lap_in_new_process

_DATA = "import numpy as np, powerkern as pk; x = np.random.default_rng(0).lognormal(size=(1000, 10))"
#: Statement of the first call of each job, which compiles code or reads it from the cache, and its preparation.
FIRST = {
    "fit": ("pk.fit(x, family={family!r})", _DATA),
    "transform": ("fit.transform(x)", f"{_DATA}; fit = pk.fit(x, family={{family!r}})"),
    "stats.boxcox": ("boxcox(x[:, 0])", f"from powerkern.stats import boxcox; {_DATA}"),
}


class Import:
    """Seconds of an import in a new process."""

    params = ["powerkern", "powerkern.stats"]
    param_names = ("module",)
    laps: dict[str, Lap]

    def track_seconds(self, module: str) -> float:
        self.laps = {module: min(lap_in_new_process(f"import {module}") for _ in range(2))}
        return self.laps[module].wall

    track_seconds.unit = "s"  # type: ignore[attr-defined]


class ImportBesideNumba:
    """Seconds by which the import of powerkern, which includes numba's, exceeds 1.5 times the import of numba."""

    laps: dict[str, Lap]

    def track_seconds_beyond_one_and_a_half_numba(self) -> float:
        modules, best = ("powerkern", "numba"), {}
        for _ in range(5):
            for module in modules:
                lap = lap_in_new_process(f"import {module}")
                best[module] = min(lap, best.get(module, lap))
        self.laps = best
        return best["powerkern"].wall - 1.5 * best["numba"].wall

    track_seconds_beyond_one_and_a_half_numba.unit = "s"  # type: ignore[attr-defined]


class FirstOfEach:
    """Time to import powerkern, fit, transform, invert and fit robustly in a new process; numba is imported before."""

    laps: dict[str, Lap]

    def track_seconds(self) -> float:
        """Time with compiled code on disk, either cached or installed by a wheel."""
        jobs = "f = pk.fit(x); f.inverse_transform(f.transform(x)); pk.fit(x, estimator='robust')"
        laps = [lap_in_new_process(f"{_DATA}; {jobs}", "import numba") for _ in range(3)]
        self.laps = {"powerkern": min(laps[1:])}  # the first may have compiled
        return self.laps["powerkern"].wall

    track_seconds.unit = "s"  # type: ignore[attr-defined]


class FirstCall:
    """Seconds of the first call in a new process, without the import."""

    params = (list(FIRST), ["yeo-johnson"])
    param_names = ("job", "family")
    laps: dict[str, Lap]

    def setup(self, job: str, family: str) -> None:
        self.statement, self.preparation = (part.format(family=family) for part in FIRST[job])

    def track_warm(self, job: str, family: str) -> float:
        """Time of the first call with compiled code on disk."""
        laps = [lap_in_new_process(self.statement, self.preparation) for _ in range(3)]
        self.laps = {"powerkern": min(laps[1:])}  # the first may have compiled
        return self.laps["powerkern"].wall

    track_warm.unit = "s"  # type: ignore[attr-defined]


class Compile:
    """Time of the first fit without compiled code on disk."""

    timeout = 120
    laps: dict[str, Lap]

    def track_over_import_of_numba(self) -> float:
        """CPU time of the first fit, relative to numba's import."""
        self.track_fit()
        self.laps["numba"] = min((lap_in_new_process("import numba") for _ in range(3)), key=lambda lap: lap.cpu)
        return self.laps["powerkern"].cpu / self.laps["numba"].cpu

    def track_fit(self) -> float:
        statement, preparation = (part.format(family="yeo-johnson") for part in FIRST["fit"])
        with tempfile.TemporaryDirectory() as folder:
            self.laps = {"powerkern": lap_in_new_process(statement, preparation, NUMBA_CACHE_DIR=folder)}
        return self.laps["powerkern"].wall

    track_fit.unit = "s"  # type: ignore[attr-defined]
