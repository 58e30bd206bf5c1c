"""Search for the optimum of a joint likelihood, and collect the results of the fit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from powerkern._engine.gather import shift_and_scale
from powerkern._engine.products import combine, cross
from powerkern._estimators.routes import maximize_likelihood
from powerkern._input.arrays import column_labels
from powerkern._models.design import Basis, Covariates
from powerkern._models.joint_likelihood import (
    JointLikelihood,
    JointMinimum,
    Singular,
    choose_start,
    inverse_hessian,
    minimize_from_starts,
    profile_ends,
)
from powerkern._models.joint_rows import JointRows
from powerkern._results import json_entries
from powerkern._results.power_fit import PowerFit
from powerkern._status import JointStatus, Status, is_failed
from powerkern._typing import FloatArray, IntArray
from powerkern.kernels.results import CURVATURE, LMBDA, STATUS

#: Seed of the random starts, which are normal about the first start with standard deviation _SPREAD/sqrt(curvature).
_SEED, _SPREAD = 20260601, 0.5
#: Smallest accepted curvature: products of smaller curvatures underflow.
_FLAT = 1e-250


class JointFitState(NamedTuple):
    """Results of a joint fit, as `powerkern.joint.JointFit` describes them."""

    power_fit: PowerFit
    lmbda_cov: FloatArray
    llf: float
    coef: FloatArray
    cov: FloatArray
    covariates: Covariates
    #: Positions of the covariates that were not left out.
    kept: IntArray
    n_iter: int
    status: JointStatus

    def to_record(self) -> dict[str, Any]:
        """Return the results as a record for JSON."""
        return {
            "columns": self.power_fit._to_record(),
            "lmbda_cov": None if np.isnan(self.lmbda_cov).any() else self.lmbda_cov,
            "llf": self.llf,
            "coef": self.coef,
            "cov": self.cov,
            "covariates": self.covariates.to_record(),
            "kept": self.kept,
            "n_iter": self.n_iter,
            "status": int(self.status),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> JointFitState:
        """Rebuild the results from a record of `to_record`; raise a ValueError if no fit can have produced it."""
        columns = PowerFit._from_record(record.get("columns"))
        p = columns.n_features
        covariates = Covariates.from_record(record.get("covariates"))
        kept = record.get("kept")
        if not (isinstance(kept, list) and kept and all(k in range(len(covariates.names)) for k in kept)):
            raise json_entries.damaged("kept is not a list of positions of covariates")
        unknown = json_entries.entry(record, "lmbda_cov") is None
        return cls(
            columns,
            np.full((p, p), np.nan) if unknown else json_entries.read_covariance(record, "lmbda_cov", p),
            float(json_entries.read_finite(record, "llf", ())),
            json_entries.read_finite(record, "coef", (len(kept), p)),
            json_entries.read_covariance(record, "cov", p),
            covariates,
            np.array(kept, dtype=np.int64),
            json_entries.read_whole(record, "n_iter"),
            JointStatus(json_entries.read_whole(record, "status", len(JointStatus) - 1)),
        )


def find_lowest_minimum(
    likelihood: JointLikelihood,
    rows: JointRows,
    design: Basis,
    family: int,
    shift: FloatArray,
    n_starts: int,
    n_threads: int,
) -> JointMinimum:
    """Return the lowest minimum of searches from the single-column optima and from random starts about them.

    Parameters
    ----------
    likelihood : JointLikelihood
        The likelihood.
    rows : JointRows
        The rows.
    design : Basis
        Basis of the design.
    family : int
        A code of `kernels.transforms.family`.
    shift : (p,) ndarray
        Constant to add to each column.
    n_starts : int
        Number of starts.
    n_threads : int
        Maximum number of threads.

    Raises
    ------
    ValueError
        If a column alone cannot be fitted, or if transformed columns are linearly dependent.
    """
    singles = _single_fits(rows, family, shift, n_threads)[likelihood.order]
    try:
        start = choose_start(likelihood, singles[:, LMBDA], has_covariates=design.rank > 1)
        return minimize_from_starts(likelihood, _make_starts(start, singles[:, CURVATURE], n_starts))
    except Singular as error:
        raise _singular_error(error, rows, design) from None


def _single_fits(rows: JointRows, family: int, shift: FloatArray, n_threads: int) -> FloatArray:
    """Fit every column separately, without covariates; raise a ValueError if a column cannot be fitted.

    Parameters
    ----------
    rows : JointRows
        The rows.
    family : int
        A code of `kernels.transforms.family`.
    shift : (p,) ndarray
        Constant to add to each column.
    n_threads : int
        Maximum number of threads.
    """
    given = np.full(rows.values.shape[1], np.nan)
    results = maximize_likelihood(shift_and_scale(rows.values, shift), family, given, rows.weight, n_threads)
    failed = np.flatnonzero(is_failed(results[:, STATUS]))
    if failed.size:
        why = Status(int(results[failed[0], STATUS])).sentence
        why = why.removeprefix("not fitted: ").removesuffix(" (identity transform)")
        raise ValueError(f"{column_labels(failed, rows.names)}: {why}, in complete rows; leave out such columns")
    flat = np.flatnonzero(~(results[:, CURVATURE] > _FLAT))
    if flat.size:
        raise ValueError(
            f"{column_labels(flat, rows.names)}: the values are so close to 0 that no lambda changes their shape; "
            "divide them by the largest magnitude"
        )
    return results


def _make_starts(start: FloatArray, curvature: FloatArray, n_starts: int) -> list[FloatArray]:
    """Return `start` and ``n_starts - 1`` random points about it, normal with sd 0.5/sqrt(curvature) in each lambda."""
    rng, unit = np.random.default_rng(_SEED), _SPREAD / np.sqrt(curvature)
    return [start, *(start + unit * rng.normal(size=start.size) for _ in range(n_starts - 1))]


def _singular_error(error: Singular, rows: JointRows, design: Basis) -> ValueError:
    """Return the error for the user that names the columns in `error`, which are linearly dependent."""
    given = "" if design.rank == 1 else " given the covariates"
    which = column_labels(error.columns, rows.names)
    if error.columns.size > 1:
        text, remedy = f"{which}: once transformed, they are linearly dependent{given}", "leave one of them out"
    else:
        text, remedy = f"{which}: once transformed, it has no variance left{given}", "leave the column out"
    return ValueError(f"{text}, so that the likelihood has no maximum; {remedy}")


def make_fit_state(
    columns: PowerFit,
    likelihood: JointLikelihood,
    best: JointMinimum,
    rows: JointRows,
    covariates: Covariates,
    design: Basis,
    n_threads: int,
) -> JointFitState:
    """Collect the results at an optimum, with the normal distribution of the standardised transformed rows.

    Parameters
    ----------
    columns : PowerFit
        The transforms of the columns.
    likelihood : JointLikelihood
        The likelihood.
    best : JointMinimum
        The optimum, with columns in the order in which the likelihood sorts them.
    rows : JointRows
        The rows.
    covariates : Covariates
        Specification of the design.
    design : Basis
        Basis of the design.
    n_threads : int
        Maximum number of threads.
    """
    inverse, p = inverse_hessian(best.at.hessian), len(best.lmbda)
    root = np.ones(len(rows.values)) if rows.weight is None else np.sqrt(rows.weight)
    z = np.ascontiguousarray(columns.transform(rows.values, n_threads=n_threads).T, dtype=np.float64) * root
    z = z[likelihood.order]
    products = cross(design.design.basis, z, n_threads)
    z -= combine(products.T, design.design.basis, n_threads=n_threads)
    kept = np.flatnonzero(design.used)
    return JointFitState(
        columns,
        np.full((p, p), np.nan) if inverse is None else likelihood.restore_order(inverse) / rows.n_obs,
        -rows.n_obs * best.at.f,
        design.coefficients(products)[np.ix_(kept, np.argsort(likelihood.order))],
        likelihood.restore_order(cross(z, z, n_threads)) / rows.n_obs,
        covariates,
        kept,
        best.n_eval,
        best.status,
    )


class FittedLikelihood(NamedTuple):
    """The joint likelihood of a fit as a `Likelihood`, for tests and intervals."""

    joint: JointLikelihood
    #: The fitted lambdas, in the order of the fit.
    lmbda: FloatArray
    n_obs: float
    names: list[str] | None

    def at(self, lmbda: FloatArray) -> float:
        """Return the negative log-likelihood at `lmbda`, which is one number for all columns, or one per column."""
        try:
            f = self.joint.evaluate(np.broadcast_to(lmbda, self.lmbda.shape)[self.joint.order]).f
        except Singular as error:
            raise ValueError(
                f"{column_labels(error.columns, self.names)}: linearly dependent once transformed with lmbda0, "
                "so the likelihood of lmbda0 is undefined; choose another lmbda0"
            ) from None
        return self.n_obs * f

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of profile intervals, (p, 2), where the log-likelihood per row has fallen by ``drop[0]``."""
        ends = profile_ends(self.joint, self.lmbda[self.joint.order], float(drop[0]))
        return np.column_stack([self.joint.restore_order(end) for end in ends])
