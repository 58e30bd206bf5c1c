"""Checks of functions built on fits: chunks, robust fits, groups, origins, damaged text, and `powerkern.stats`."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.stats

import powerkern as pk
import powerkern.stats
from powerkern.sketch import fit_chunks
from tests.support.fits import kernel_rows

from .checks import Finding, check_batch, check_fit
from .columns import Batch
from .oracle import Likelihood

#: Largest number of decades that weights span if sums are quantised.
DECADES = 3.0
#: Seconds that reading and applying a damaged fit of a few columns may take.
SECONDS = 2.0

ROBUST = ("robust", "rewml-nr", "carroll", "mtl", "ppcc")


def _rng(batch: Batch) -> np.random.Generator:
    """Return a random generator for further draws that is seeded by the batch's name."""
    return np.random.default_rng([int(part) for part in batch.name.split(":")])


# --- chunks -------------------------------------------------------------------------------------------


def check_chunks(batch: Batch) -> Iterator[Finding]:
    """Compare a fit of a few chunks with the fit of all rows, to the accuracy that the former's status promises."""
    batch = batch._replace(weight=_ordinary(batch.weight))
    n = len(batch.values)
    cuts = np.sort(_rng(batch).integers(1, n, 3)) if n > 1 else []
    chunks = [chunk for chunk in np.split(batch.values, cuts) if len(chunk)]
    weights = None if batch.weight is None else [w for w in np.split(batch.weight, cuts) if len(w)]

    def fit() -> pk.PowerFit:
        return fit_chunks(chunks, batch.family, sample_weight=weights, n_threads=1)

    for finding in check_fit(batch, fit):
        if not (finding.kind == "status" and "UNRESOLVED" in finding.text):
            yield finding


def _ordinary(weight: np.ndarray | None) -> np.ndarray | None:
    """Clip the weights to a moderate number of decades; a weight of 0 stays 0."""
    if weight is None:
        return None
    return np.where(weight > 0.0, np.clip(weight, 10.0**-DECADES, 10.0**DECADES), 0.0)


# --- robust fits --------------------------------------------------------------------------------------


def check_robust(batch: Batch) -> Iterator[Finding]:
    """Check that a robust fit and its methods raise nothing, and that all kept values have finite images."""
    estimator = str(_rng(batch).choice(ROBUST))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = pk.fit(batch.values, batch.family, estimator, n_threads=1)
            images = fit.transform(batch.values, n_threads=1)
            kept = fit.weights(batch.values) > 0.0
            fit.outliers(batch.values)
            pk.PowerFit.from_json(fit.to_json())
            tied = np.nanmedian(batch.values, axis=0)  # the image of a tied value may be infinite
    except Exception as error:
        yield Finding("exception", f"{batch.name}:*", f"{estimator}: {error!r}")
        return
    kept &= (fit.status != pk.Status.TIED) | (batch.values != tied)
    for j in range(fit.n_features):
        wrong = np.count_nonzero(kept[:, j] & ~np.isfinite(images[:, j]))
        if wrong or not np.isfinite(fit.lmbda[j]):
            text = f"{estimator}: {wrong} kept values have no finite image, lambda {fit.lmbda[j]!r}"
            yield Finding("not-finite", f"{batch.name}:{j}", text)


# --- fits of groups, and with an origin ---------------------------------------------------------------


def check_groups(batch: Batch) -> Iterator[Finding]:
    """Check that a grouped fit and its output have the bits of separate fits of each group's rows."""
    rng = _rng(batch)
    labels = rng.integers(0, rng.choice([1, 3, 20]), len(batch.values))
    estimator = str(rng.choice(["mle", "mle", "robust"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(batch.values, batch.family, estimator, groups=labels, sample_weight=batch.weight, n_threads=1)
        images = fit.transform(batch.values, labels, n_threads=1)
        for label in np.unique(labels).tolist():
            rows = labels == label
            weight = None if batch.weight is None else batch.weight[rows]
            if weight is not None and not weight.any():
                continue  # pk.fit refuses rows without any weight
            alone = pk.fit(batch.values[rows], batch.family, estimator, sample_weight=weight, n_threads=1)
            same = kernel_rows(alone).tobytes() == kernel_rows(fit[label]).tobytes()
            if not (same and np.array_equal(alone.transform(batch.values[rows]), images[rows], equal_nan=True)):
                yield Finding("groups", f"{batch.name}:*", f"{estimator}: group {label} of {np.unique(labels).size}")


def check_origin(batch: Batch) -> Iterator[Finding]:
    """Check that a fit with an origin raises nothing, is finite and monotone, and survives JSON bit for bit."""
    rng = _rng(batch)
    estimator = str(rng.choice(["mle", "central-mle", "robust"]))
    values, weight = batch.values[:400, :4], batch.weight
    if weight is not None:
        some = np.flatnonzero(weight > 0.0)[:400]  # values without weight may lie below the origin
        values, weight = batch.values[some, :4], weight[some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = pk.fit(values, batch.family, estimator, origin="fit", sample_weight=weight, n_threads=1)
        images = fit.transform(values, n_threads=1)
        again = pk.PowerFit.from_json(fit.to_json()).transform(values, n_threads=1)
        back = fit.inverse_transform(images, n_threads=1, out_of_range="clip")
    if again.tobytes() != images.tobytes():
        yield Finding("json", f"{batch.name}:*", f"{estimator}: other images after reading")
    kept = ~np.isnan(values)
    if estimator != "mle":
        kept &= fit.weights(values) > 0.0
    for j in range(fit.n_features):
        x, z = values[kept[:, j], j], images[kept[:, j], j]
        where = f"{batch.name}:{j}"
        about = f"{estimator}, {fit.status_text[j]}, lambda {fit.lmbda[j]!r}"
        if not (np.isfinite(z).all() and np.isfinite(fit.lmbda[j])):
            yield Finding("not-finite", where, about)
            continue
        order = np.argsort(x)
        falls = -np.diff(z[order]) / np.spacing(np.abs(z).max(initial=1.0))
        if falls.max(initial=0.0) > 1e4:
            yield Finding("monotone", where, f"falls by {falls.max():g} ulp: {about}")
        if np.isnan(back[kept[:, j], j]).any():
            yield Finding("inverse-nan", where, about)


# --- fits as text -------------------------------------------------------------------------------------

#: Replacements for numbers.
_EXTREMES = ("0", "-0.0", "1", "-1", "5e-324", "1e308", "-1e308", "1e400", "1e-400", "NaN", "null", '"nan"', '"inf"')
_EXTREMES += ('"-inf"', "true", '""', "[]", "{}", "1" + "0" * 400, "9007199254740993", "1e16", "-1e16", "7")


def check_texts(batch: Batch) -> Iterator[Finding]:
    """Check that a damaged JSON text raises ValueError or gives a usable fit, within some seconds."""
    rng = _rng(batch)
    values = np.ascontiguousarray(batch.values[:50, :3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = pk.fit(values, batch.family).to_json()
        for _ in range(batch.values.shape[1]):
            damaged = mutated(rng, text)
            began = time.monotonic()
            fault = _fault_of_text(damaged, values)
            seconds = time.monotonic() - began
            if fault is None and seconds > SECONDS:
                fault = f"took {seconds:.1f} s"
            if fault is not None:
                yield Finding("text", f"{batch.name}:*", f"{fault}: {damaged}")


def mutated(rng: np.random.Generator, text: str) -> str:
    """Return `text` after one to three random changes: a number is replaced, or a character is deleted or changed."""
    for _ in range(int(rng.integers(1, 4))):
        if rng.random() < 0.8:
            numbers = [match.span() for match in re.finditer(r"-?\d[\d.e+-]*", text)]
            start, end = numbers[int(rng.integers(len(numbers)))]
            text = text[:start] + str(rng.choice(_EXTREMES)) + text[end:]
        else:
            at = int(rng.integers(len(text)))
            text = text[:at] + str(rng.choice(["", "0", "]", ",", "e", "\x00"])) + text[at + 1 :]
    return text


def _fault_of_text(text: str, values: np.ndarray) -> str | None:
    try:
        fit = pk.PowerFit.from_json(text, check=False)
    except ValueError:
        return None
    except Exception as error:
        return f"from_json raises {error!r}"
    for apply in (fit.transform, lambda x: fit.inverse_transform(x, out_of_range="clip"), lambda _: fit.to_json()):
        try:
            apply(values[:, : fit.n_features])
        except ValueError:
            continue
        except Exception as error:
            return f"applying raises {error!r}"
    json.loads(fit.to_json())
    return None


# --- powerkern.stats ----------------------------------------------------------------------------------


def check_stats(batch: Batch) -> Iterator[Finding]:
    """Compare transforms and likelihoods with SciPy's, except where SciPy's overflow or cancel."""
    rng = _rng(batch)
    for j, x in enumerate(batch.values.T):
        x = x[~np.isnan(x)]
        if x.size < 3 or not _is_tame(x):
            continue
        lmbda = float(rng.uniform(-2.0, 4.0))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for what, got, expected in _beside_scipy(x, batch.family, lmbda):
                    if not np.allclose(got, expected, rtol=1e-7, atol=1e-9, equal_nan=True):
                        text = f"{what} at lambda {lmbda!r}: {got!r}, SciPy {expected!r}"
                        yield Finding("stats", f"{batch.name}:{j}", text)
        except Exception as error:
            yield Finding("exception", f"{batch.name}:{j}", repr(error))


def _is_tame(x: np.ndarray) -> bool:
    sizes = np.abs(x)
    return bool(sizes.max() < 1e3 and sizes.min() > 1e-3 and np.std(x) > 1e-2 * sizes.max())


def _beside_scipy(x: np.ndarray, family: str, lmbda: float) -> Iterator[tuple[str, Any, Any]]:
    """Yield triples: the name of a function of `powerkern.stats`, its result, and the result of SciPy's function."""
    ours, theirs = powerkern.stats, scipy.stats
    if family == "box-cox":
        yield "boxcox", ours.boxcox(x, lmbda), theirs.boxcox(x, lmbda)
        yield "boxcox_llf", ours.boxcox_llf(lmbda, x), theirs.boxcox_llf(lmbda, x)
        best, theirs_best = ours.boxcox_normmax(x, method="mle"), theirs.boxcox_normmax(x, method="mle")
    else:
        yield "yeojohnson", ours.yeojohnson(x, lmbda), theirs.yeojohnson(x, lmbda)
        yield "yeojohnson_llf", ours.yeojohnson_llf(lmbda, x), theirs.yeojohnson_llf(lmbda, x)
        best, theirs_best = ours.yeojohnson_normmax(x), theirs.yeojohnson_normmax(x)
    exact = Likelihood(x, None, family)  # at large lambdas SciPy's likelihood loses all digits
    yield "nll of the optimum", exact.nll(best), min(exact.nll(best), exact.nll(theirs_best))


#: The kinds of checks.
CHECKS: dict[str, Callable[[Batch], Iterator[Finding]]] = {
    "fits": check_batch,
    "chunks": check_chunks,
    "robust": check_robust,
    "groups": check_groups,
    "origin": check_origin,
    "texts": check_texts,
    "stats": check_stats,
}
