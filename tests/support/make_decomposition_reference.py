"""Write tests/data/decomposition.json: the UV decomposition of a textbook's 5 x 5 matrix, computed with 40 digits.

The matrix has two missing entries. Results after single elements and after epochs are stored. Run ``python
tests/support/make_decomposition_reference.py`` in any folder. It takes ten seconds, and needs mpmath but not powerkern.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath

TARGET = Path(__file__).parents[1] / "data" / "decomposition.json"
ABOUT = (
    "Two columns of U and two rows of V, all ones at first; the elements of U row by row, then those of V, each set to "
    "its best value. first: the root mean square error after U[0, 0], V[0, 0], U[2, 0], and the product then. epochs: "
    "after all elements once, and ten times. rmse: after each of 20 epochs. end: the product that further epochs do "
    "not change. Written by tests/support/make_decomposition_reference.py."
)
#: The matrix of Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 9.4; None is blank.
LECTURE = [[5, 2, 4, 4, 3], [3, 1, 2, 4, 1], [2, None, 3, 1, 4], [2, 5, 4, 3, 5], [4, 4, 5, 4, None]]
RANK = 2
Matrix = list[list[mpmath.mpf]]


class Decomposition:
    """Factors U and V, which start from ones; each element can be set to its optimum given all other elements."""

    def __init__(self) -> None:
        self.U: Matrix = [[mpmath.mpf(1)] * RANK for _ in LECTURE]
        self.V: Matrix = [[mpmath.mpf(1)] * len(LECTURE[0]) for _ in range(RANK)]

    def product(self) -> Matrix:
        return [[mpmath.fdot(row, column) for column in zip(*self.V, strict=True)] for row in self.U]

    def rmse(self) -> mpmath.mpf:
        pairs = zip(LECTURE, self.product(), strict=True)
        squares = [(m - p) ** 2 for row, fit in pairs for m, p in zip(row, fit, strict=True) if m is not None]
        return mpmath.sqrt(mpmath.fsum(squares) / len(squares))

    def improve_u(self, r: int, s: int) -> None:
        """Set U[r, s] to its optimum given all other elements."""
        seen = [j for j, m in enumerate(LECTURE[r]) if m is not None]
        rest = [LECTURE[r][j] - sum(self.U[r][k] * self.V[k][j] for k in range(RANK) if k != s) for j in seen]
        weights = [self.V[s][j] for j in seen]
        self.U[r][s] = mpmath.fdot(weights, rest) / mpmath.fdot(weights, weights)

    def improve_v(self, s: int, j: int) -> None:
        """Set V[s, j] to its optimum given all other elements."""
        seen = [r for r in range(len(LECTURE)) if LECTURE[r][j] is not None]
        rest = [LECTURE[r][j] - sum(self.U[r][k] * self.V[k][j] for k in range(RANK) if k != s) for r in seen]
        weights = [self.U[r][s] for r in seen]
        self.V[s][j] = mpmath.fdot(weights, rest) / mpmath.fdot(weights, weights)

    def run_epoch(self) -> None:
        for r in range(len(LECTURE)):
            for s in range(RANK):
                self.improve_u(r, s)
        for s in range(RANK):
            for j in range(len(LECTURE[0])):
                self.improve_v(s, j)


def to_floats(matrix: Matrix) -> list[list[float]]:
    return [[float(v) for v in row] for row in matrix]


def first_elements() -> dict[str, Any]:
    with mpmath.workdps(40):
        parts, errors = Decomposition(), []
        for improve, r, s in ((parts.improve_u, 0, 0), (parts.improve_v, 0, 0), (parts.improve_u, 2, 0)):
            improve(r, s)
            errors.append(float(parts.rmse()))
        return {"rmse": errors, "product": to_floats(parts.product())}


def all_epochs() -> Iterator[Decomposition]:
    """Yield the decomposition after each epoch until the sum of the elements of U V changes by less than 1e-25."""
    parts, before = Decomposition(), mpmath.mpf(0)
    while True:
        parts.run_epoch()
        yield parts
        now = mpmath.fsum(v for row in parts.product() for v in row)
        if abs(now - before) < mpmath.mpf(10) ** -25:
            return
        before = now


def main() -> None:
    content: dict[str, Any] = {"about": ABOUT, "first": first_elements(), "epochs": {}, "rmse": []}
    with mpmath.workdps(40):
        for n, parts in enumerate(all_epochs(), start=1):
            if n <= 20:
                content["rmse"].append(float(parts.rmse()))
            if n in (1, 10):
                content["epochs"][str(n)] = {"U": to_floats(parts.U), "V": to_floats(parts.V)}
        content["end"] = to_floats(parts.product())
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    TARGET.write_text(f"{{{lines}}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
