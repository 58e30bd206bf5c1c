"""Measure every figure that robust fits are meant to reach, in one run.

python -m asv_benches.report_robust [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_robust
from ._measure import FAMILIES
from .report import Figure, main

#: Replicates of the simulation.
REPLICATES = 2_000


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    yield from agreement()
    yield from behaviour()
    yield from simulation()
    yield from speed()
    yield from short()


def agreement() -> Iterator[Figure]:
    for file in bench_robust.RECORDS:
        name = f"cellWise, {file}:"
        cellwise = bench_robust.Cellwise
        yield Figure(f"{name} records with other cells left out", "<= 0", cellwise, "track_other_cells", (file,))
        yield Figure(f"{name} distance of lambda from R's", "<= 1.3e-4", cellwise, "track_lambda", (file,))
        optimum = f"{name} distance of lambda from the optimum on R's cells"
        yield Figure(optimum, "<= 1e-9", cellwise, "track_from_optimum", (file,))
        polished = f"{name} distance of lambda from R's polished value, itself good to about 1e-5"
        yield Figure(polished, "<= 1e-9", cellwise, "track_from_polished", (file,))
        excess = f"{name} objective where the global search ends, less that of R's path"
        yield Figure(excess, "<= 1e-9", cellwise, "track_objective_over_rs", (file,))
    yield Figure(
        "Huber's location and scale of units.json, error over the scale", "<= 1e-10", bench_robust.Units, "track_worst"
    )


def behaviour() -> Iterator[Figure]:
    published = {("MPG", "mle"): -0.11, ("MPG", "rewml"): 0.84, ("Weight", "mle"): 0.83, ("Weight", "rewml"): 0.09}
    for (column, estimator), value in published.items():
        for convention in ("paper", "cellwise") if estimator == "rewml" else ("paper",):
            rules = f", {convention} rules" if estimator == "rewml" else ""
            name = f"TopGear {column}, Box-Cox, {estimator}{rules}: lambda, published {value}"
            for relation, bound in ((">=", value - 0.005), ("<=", value + 0.005)):
                target = f"{relation} {bound:.3f}"
                yield Figure(name, target, bench_robust.TopGear, "track_lambda", (column, estimator, convention))
    for family in FAMILIES:
        name = f"sensitivity curve, {family}:"
        near = f"{name} distance from ML's for |z| <= 2 (ML's reaches 50)"
        yield Figure(near, "<= 0.5", bench_robust.Sensitivity, "track_near_center", (family,))
        last = f"{name} largest |z| that moves lambda at all (paper: about 2.6)"
        yield Figure(last, "<= 2.9", bench_robust.Sensitivity, "track_last_that_counts", (family,))
    for estimator in bench_robust.RESISTANT:
        name = f"{estimator}: values that differ in any bit by threads (1, 2, 8), order of rows, columns, memory"
        yield Figure(name, "<= 0", bench_robust.Identity, "track_differences", (estimator,))
        for family in FAMILIES:
            name = f"{estimator}, {family}: time of the slowest nasty column over that of a lognormal one"
            yield Figure(name, "<= 3 x", bench_robust.Nasty, "track_slowest", (estimator, family))


def simulation() -> Iterator[Figure]:
    at = (0.1, 10.0)
    for case, (bias, mse) in bench_robust.PUBLISHED.items():
        where = f"{case[0]} {case[1]}, 10 % at k = 10:"
        parameters = (case, at, REPLICATES)
        cited = f"bias of RewML less R's {bias} (100 replicates), in its standard errors"
        yield Figure(f"{where} {cited}", "<= 2", bench_robust.BesideR, "track_bias", parameters)
        cited = f"MSE of RewML less R's {mse}, in its standard errors"
        yield Figure(f"{where} {cited}", "<= 2", bench_robust.BesideR, "track_mse", parameters)
    parameters = (("yeo-johnson", 0.5), at, "mle", REPLICATES)
    for name, method, value, spread in (
        ("bias", "track_bias", -0.683, 0.02),
        ("MSE", "track_mse", 0.469, 0.03),
    ):
        for relation, bound in ((">=", value - spread), ("<=", value + spread)):
            name_of = f"yeo-johnson 0.5, 10 % at k = 10: {name} of ML, R's is {value}"
            yield Figure(name_of, f"{relation} {bound:.3f}", bench_robust.Simulation, method, parameters)
    for case in [*bench_robust.PUBLISHED, ("box-cox", 1.0)]:
        for share, k in bench_robust.SETTINGS:
            name = f"{case[0]} {case[1]}, {share:.0%} at k = {k:g}: MSE of RewML over that by R's rules, same samples"
            yield Figure(name, "<= 1.05 x", bench_robust.BesideR, "track_mse_over_rs", (case, (share, k), REPLICATES))


def short() -> Iterator[Figure]:
    for estimator in ("robust", "ppcc"):
        for n, target in ((20, "<= 6"), (50, "<= 3"), (300, "<= 2")):
            name = f"{estimator}, columns of {n}: cost a value over that of columns of 10,000"
            yield Figure(name, target, bench_robust.ShortColumns, "track_over_long", (estimator, n))


def speed() -> Iterator[Figure]:
    size = (10_000, 100)
    for family in FAMILIES:
        name = f"RewML, {family}, 10000 x 100, one thread, in passes of np.exp (R: 7700)"
        yield Figure(name, "<= 80", bench_robust.OneThread, "track_exp_units", ("robust", family, *size))
        name = f"RewML, {family}, 10000 x 100, two threads over one"
        yield Figure(name, ">= 1.8 x", bench_robust.OneThread, "track_thread_scaling", ("robust", family, *size))
    for data in ("glass", "simulated"):
        for family in FAMILIES:
            name = f"RewML, {family}, spectra ({data}) 180 x 500, all threads (R: 1700)"
            yield Figure(name, "<= 15 ms", bench_robust.Spectra, "track_ms", ("robust", family, data))


if __name__ == "__main__":
    main(figures)
