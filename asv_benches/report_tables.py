"""Peak memory and time of the command line for a CSV file.

python -m asv_benches.report_tables [--megabytes 173]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

_COLUMNS = 10
#: Characters of a number with its delimiter.
_WIDTH = 19


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=173)
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        data, fit, out = (Path(folder) / name for name in ("data.csv", "fit.json", "z.csv"))
        write(data, megabytes * 1_000_000)
        small = Path(folder) / "small.csv"
        write(small, 100_000)
        measure("small fit", "fit", small, "-o", fit)
        measure("fit", "fit", data, "-o", fit)
        measure("fit rewml", "fit", data, "--estimator", "robust", "-o", fit)
        measure("summary", "summary", data)
        measure("transform", "transform", data, "--fit", fit, "-o", out)


def write(path: Path, size: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join(f"x{j}" for j in range(_COLUMNS)) + "\n")
        while file.tell() < size:
            block = rng.lognormal(size=(min(20_000, size // (_WIDTH * _COLUMNS)), _COLUMNS))
            file.writelines(",".join(map(repr, row)) + "\n" for row in block.tolist())


def measure(label: str, *words: object) -> None:
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "powerkern", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, label
    cpu = usage.ru_utime + usage.ru_stime
    print(
        f"{label:10} peak {usage.ru_maxrss / 1e3:6.0f} MB, {cpu:5.1f} s of CPU, {time.perf_counter() - started:5.1f} s"
    )


if __name__ == "__main__":
    main()
