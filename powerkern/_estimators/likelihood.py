"""Maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from powerkern._estimators.options import CUTOFF, CheckedOptions
from powerkern._estimators.standard_units import STANDARDIZED
from powerkern._input.arrays import as_choice


@dataclass(frozen=True, kw_only=True, repr=False)
class ML(CheckedOptions):
    r"""Maximum likelihood, ``estimator="mle"``: lambda minimises the negative log-likelihood of the transformed values.

    .. math:: g(\lambda) = \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline J

    ([1]_, eq. (8), per observation), see `powerkern.fit`. g is strictly convex: its only optimum is found as the root
    of its derivative. A single value can carry lambda anywhere.

    Parameters
    ----------
    prestandardize : {"none", "mad", "std"}, default "none"
        Yeo-Johnson bends about zero: its lambda depends on where that is and on the unit. "mad" transforms
        ``(x - median)/MAD`` (MAD with 1.4826; the standard deviation where it is 0), "std" ``(x - mean)/sd``, with
        1/n: lambda is then the same for ``a + b x``, b > 0. Box-Cox, whose lambda does not depend on the unit, is not
        standardised. See also ``powerkern.fit(X, origin="fit")``.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> pk.fit(np.arange(10.0)).estimator
    ML()
    """

    prestandardize: str = "none"

    name: ClassVar[str] = "mle"
    cutoff: ClassVar[float] = CUTOFF
    has_likelihood: ClassVar[bool] = True
    fits_origin: ClassVar[bool] = True

    @property
    def sets_unit(self) -> bool:
        """Whether columns are standardised before they are fitted."""
        return self.prestandardize != "none"

    def __post_init__(self) -> None:
        as_choice("prestandardize", self.prestandardize, STANDARDIZED)

    def solver(self) -> None:
        """None: lambda is a root of sums over the data."""
