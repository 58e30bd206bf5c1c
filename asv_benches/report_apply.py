"""Time of transforms in every shape, dtype and order, and on two threads, measured in one run.

python -m asv_benches.report_apply [--only WORD] [--seconds S] [--write FILE]

The report takes two minutes, and half a minute with --only "yeo-johnson, standardized". Calls are repeated, for up to
ten times as long, until two threads of np.exp do at least 1.9 times the work of one.

For code for CPUs with AVX2 but without AVX-512, put NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES="" before the command.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from . import bench_apply
from .bench_apply import BEST, DTYPES, JOBS, OUTPUTS, SHAPES
from .report import FAMILIES, Figure, crossed, main

#: Passes of the package's own exp: one and a half times what was measured, alike with AVX2 and AVX-512. A loop that
#: has lost its vectors takes more.
PASSES = {
    ("transform", "box-cox", "raw"): 5.5,
    ("transform", "box-cox", "standardized"): 4.5,
    ("transform", "yeo-johnson", "raw"): 7.0,
    ("transform", "yeo-johnson", "standardized"): 6.0,
    ("inverse_transform", "box-cox", "raw"): 6.5,
    ("inverse_transform", "box-cox", "standardized"): 6.0,
    ("inverse_transform", "yeo-johnson", "raw"): 7.5,
    ("inverse_transform", "yeo-johnson", "standardized"): 7.5,
}
PASSES_OF_FLOAT32 = {"box-cox": 3.5, "yeo-johnson": 4.5}


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    for job, family, output, shape in itertools.product(JOBS, FAMILIES, OUTPUTS, SHAPES):
        name = f"{job} {family}, {output}, {shape}"
        where = (job, family, output, shape)
        for dtype in DTYPES:
            if shape == BEST:
                figure = f"{name}: {dtype}, in passes of powerkern's exp"
                target = f"<= {PASSES[job, family, output] if dtype == 'float64' else PASSES_OF_FLOAT32[family]}"
                yield Figure(figure, target, bench_apply.OwnExp, "track_passes", (job, family, output, dtype))
            else:
                target = "<= 2" if shape.startswith("20 x") else "<= 1.3"
                figure = f"{name}: {dtype}, cost a value over {BEST}"
                yield Figure(figure, target, bench_apply.Shape, "track_over_best", (*where, dtype))
            figure = f"{name}: {dtype}, two threads over one"
            yield Figure(figure, ">= 1.6 x", bench_apply.Threads, "track_two_over_one", (*where, dtype))
        figure = f"{name}: np.exp in the same laps, two threads over one"
        yield Figure(figure, ">= 1.6 x", bench_apply.Threads, "track_np_exp", (*where, DTYPES[0]))
        figure = f"{name}: float32 over float64"
        yield Figure(figure, "<= 0.8", bench_apply.Float32, "track_over_float64", where)
    for family, order, shape in itertools.product(FAMILIES, ("C", "F"), ((10_000, 100), (200, 5_000))):
        figure = f"fit {family}, {shape[0]} x {shape[1]}, order {order}: float32 over float64"
        yield Figure(figure, "<= 1.2", bench_apply.Fit32, "track_over_float64", (family, order, shape))


if __name__ == "__main__":
    main(figures, crossed, seconds=0.5)
