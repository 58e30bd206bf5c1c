"""Waiting time for the first call of each job in a new process, including the import.

python -m asv_benches.report_waits [--wheel dist/*.whl] [--write docs/benchmarks/waits.inc]

Calls are timed without compiled code on disk (cold), and with code that an earlier process compiled. With --wheel, they
are also timed with an unpacked wheel that contains compiled code, and an empty cache.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from pathlib import Path

from ._measure import Lap, lap_in_new_process
from .report import list_table, machine

_PREPARATION = "import numpy as np; x = np.random.default_rng(0).lognormal(size=(1000, 10))"
JOBS = {
    "fit": "pk.fit(x)",
    "fit, transform": "pk.fit(x).transform(x)",
    "fit, transform, inverse, summary": "f = pk.fit(x); f.inverse_transform(f.transform(x)); f.summary(x)",
    "robust fit, transform": "pk.fit(x, estimator='robust').transform(x)",
    "fit of groups": "pk.fit(x, groups=np.arange(1000) % 10)",
    "``stats.boxcox``": "from powerkern.stats import boxcox; boxcox(x[:, 0])",
}


def _lap(job: str, **environment: str) -> Lap:
    return lap_in_new_process(f"import powerkern as pk; {JOBS[job]}", _PREPARATION, **environment)


def _cells(job: str, wheel: Path | None) -> list[str]:
    with tempfile.TemporaryDirectory() as cache:
        cold = _lap(job, NUMBA_CACHE_DIR=cache)
        kept = min(_lap(job, NUMBA_CACHE_DIR=cache) for _ in range(3))
    laps = [cold, kept]
    if wheel is not None:
        with tempfile.TemporaryDirectory() as cache:
            unpacked = {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(wheel), "PYTHONSAFEPATH": "1"}
            laps.append(min(_lap(job, **unpacked) for _ in range(3)))
            if any(path.is_file() for path in Path(cache).rglob("*")):
                raise SystemExit(f"{job}: compiled, though the wheel holds code")
    return [f"{lap.cpu:.1f} ({lap.wall:.1f})" for lap in laps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="a wheel built with POWERKERN_COMPILE=1")
    parser.add_argument("--write", type=Path, help="write the table as reStructuredText to this file")
    options = parser.parse_args()
    command = "python -m asv_benches.report_waits" + " --wheel dist/*.whl" * bool(options.wheel)
    headings = ["first call", "cold", "compiled before", "from a wheel with compiled code"][: 4 if options.wheel else 3]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if options.wheel:
            zipfile.ZipFile(options.wheel).extractall(folder)
        for job in JOBS:
            rows.append([job, *_cells(job, Path(folder) if options.wheel else None)])
            print(" | ".join(rows[-1]), flush=True)
    caption = f"Seconds of CPU time, in brackets by the clock, by ``{command}`` on: {machine()}"
    if options.write:
        options.write.write_text(list_table(caption, headings, rows))


if __name__ == "__main__":
    main()
