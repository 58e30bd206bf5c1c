"""Cost of one evaluation of the score of the profile likelihood, in passes of np.exp over the same values."""

from __future__ import annotations

import numba
import numpy as np

from powerkern._engine.one_column import nll_vector
from powerkern.kernels.likelihood import one_pass_sums, score_formulas
from powerkern.kernels.likelihood.scratch import CHUNK
from powerkern.kernels.transforms.family import FAMILIES as FAMILY_CODES

from ._measure import FAMILIES, InTurns, matrix


@numba.njit(error_model="numpy")
def _evaluate(d: np.ndarray, exponent: float, both_signs: bool) -> float:
    sums = score_formulas.zero_sums(0.0)
    for start in range(0, d.size, CHUNK):
        sums = one_pass_sums.add_sums(sums, d[start : start + CHUNK], None, exponent, both_signs)
    return sums[-1]  # type: ignore[no-any-return]


class PlainSums(InTurns):
    """Time of one evaluation in one pass, as in most columns: all derivatives come from sums over the logs."""

    params = ([False, True], ["float64", "float32"], [10_000])
    param_names = ("both_signs", "dtype", "n")

    def setup(self, both_signs: bool, dtype: str, n: int) -> None:
        logs = np.random.default_rng(0).standard_normal(n)
        self.d, self.x, self.out = logs.astype(dtype), logs, np.empty(n)
        _evaluate(self.d, 0.5, both_signs)  # compiles

    def track_exp_units(self, both_signs: bool, dtype: str, n: int) -> float:
        calls = {
            "powerkern": lambda: _evaluate(self.d, 0.5, both_signs),
            "np.exp": lambda: np.exp(self.x, out=self.out),
        }
        self.compare(calls)
        return self.ratio("powerkern", "np.exp")


class TwoPass(InTurns):
    """Time of one evaluation in two passes: a profile at 65 lambdas minus a profile at one, divided by 64."""

    params = (FAMILIES, [0.9, 40.0], [10_000])
    param_names = ("family", "lmbda", "n")

    def setup(self, family: str, lmbda: float, n: int) -> None:
        self.x = matrix(family, n, 1)[:, 0].copy()
        self.out = np.empty(n)
        self.few, self.many = np.full(1, lmbda), np.full(65, lmbda)
        nll_vector(self.x, FAMILY_CODES[family], self.few)  # compiles

    def track_exp_units(self, family: str, lmbda: float, n: int) -> float:
        calls = {
            "1 lambda": lambda: nll_vector(self.x, FAMILY_CODES[family], self.few),
            "65 lambdas": lambda: nll_vector(self.x, FAMILY_CODES[family], self.many),
            "np.exp": lambda: np.exp(self.x, out=self.out),
        }
        self.compare(calls)
        return (self.laps["65 lambdas"].wall - self.laps["1 lambda"].wall) / 64 / self.laps["np.exp"].wall
