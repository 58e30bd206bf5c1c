"""Maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.options import CUTOFF


@dataclass(frozen=True)
class ML:
    r"""Maximum likelihood, ``estimator="mle"``: lambda minimises the negative log-likelihood of the transformed values.

    .. math:: g(\lambda) = \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline J

    ([1]_, eq. (8), per observation), see `powerkern.fit`. g is strictly convex: its only optimum is found as the root
    of its derivative. It has no options. A single value can carry lambda anywhere.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> pk.fit(np.arange(10.0)).estimator
    ML()
    """

    name: ClassVar[str] = "mle"
    keeps_all: ClassVar[bool] = True
    cutoff: ClassVar[float] = CUTOFF

    def solver(self) -> None:
        """None: lambda is a root of sums over the data."""
