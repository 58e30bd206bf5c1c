"""What a site is willing to tell: a policy, checked at the site before anything is computed from its rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern.federated.account import largest_mu
from powerkern.federated.privacy import Privacy
from powerkern.kernels.power_sums.fit import MAX_BINS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import checked_bounds

FloatArray = NDArray[np.float64]

#: What may be asked: powers of two about the extremes; the extremes; moments; power sums; noisy counts.
KINDS = ("code", "range", "moments", "sketch", "counts")

_LARGEST = float(np.finfo(np.float64).max)
_COUNTS = ("bins", "rows_per_bin", "min_rows", "min_sites", "questions", "sessions")


@dataclass(frozen=True)
class Policy:
    """What a site is willing to tell. The default is strict; `open` tells everything that a fit can ask for.

    A request that exceeds the policy is refused, in words that hold no value of the data. Refusals depend on the rows
    only as far as said here, and each of them counts as a question.

    Parameters
    ----------
    families : sequence of {"yeo-johnson", "box-cox"}
        Transforms that may be fitted; default: both.
    kinds : sequence of {"code", "range", "moments", "sketch", "counts"}, default ("code", "moments")
        What may be asked for: "code", the powers of two about the extremes of each column; "range", the extremes, and
        mean and spread of a sample of the logs; "moments", sums at exponents of the server's choice (protocol
        "rounds"); "sketch", power sums in bins (protocol "sketch"); "counts", differentially private counts in bins.
    masks : bool, default True
        Send sums under masks only.
    bounds : (low, high), optional
        Public bounds of each column. Bounds that the server asks with must contain them; rows beyond are an error when
        the client is made. Without, bounds in requests are powers of two, and a refusal tells on which side of them the
        rows are: repeated, no more than "code" does.
    largest_exponent : float, default 5
        Moments are told at ``|lambda|`` up to this. At large ones a sum is the power of its largest value. The site
        says so when the fit begins, and the server searches within the smallest limit of all sites: a column whose
        optimum is beyond it gets the lambda at the limit, with status ``AT_BOUND`` and a warning.
    rounding : float, default 2**-16
        Masked sums of moments are rounded to this part of a row, which changes lambda by some thousandths of its
        standard error where values fill their bounds, and by as much as one where few tight values lie far from 0.
        Exact sums, as with 0, tell a few of the largest and smallest rows to all digits.
    bins : int, default 64
        Most bins of a column in a sketch. A bin with at most four values gives them away.
    rows_per_bin : int, default 10
        A sketch is told if each of the site's bins has no value, or at least so many.
    min_rows : int, default 10
        Answer if each column has no value, or at least so many.
    min_sites : int, default 3
        Answer under masks if so many sites take part: with two, each sees the other's sums as the difference to its
        own.
    questions : int, default 40
        Most exponents and sketches in a session, refused ones included.
    sessions : int, default 3
        Most sessions in which anything is told about the same rows. A session has one shift of Box-Cox, for each tells
        other powers of two about the extremes.
    privacy : Privacy, optional
        What all private counts of these rows may cost together; its `n_bins` is not looked at. Without, none are told.
    changing_sites : bool, default False
        Take part in fits of these rows with other sites than in the first one. The difference of two fits' sums is the
        sums of the sites that only one of them has.

    See Also
    --------
    Client : its argument `policy`.

    Examples
    --------
    >>> from powerkern.federated import Policy
    >>> Policy(families=["box-cox"], min_rows=50).kinds
    ('code', 'moments')
    >>> Policy.open().masks
    False
    """

    families: tuple[str, ...] = tuple(FAMILIES)
    kinds: tuple[str, ...] = ("code", "moments")
    masks: bool = True
    bounds: tuple[ArrayLike, ArrayLike] | None = None
    largest_exponent: float = 5.0
    rounding: float = 2.0**-16
    bins: float = 64
    rows_per_bin: float = 10
    min_rows: float = 10
    min_sites: float = 3
    questions: float = 40
    sessions: float = 3
    privacy: Privacy | None = None
    changing_sites: bool = False

    def __post_init__(self) -> None:
        for name, known in (("families", tuple(FAMILIES)), ("kinds", KINDS)):
            given = getattr(self, name)
            if isinstance(given, str) or not set(given) <= set(known):
                raise ValueError(f"{name} is a sequence of {', '.join(map(repr, known))}, got {given!r}")
            object.__setattr__(self, name, tuple(given))
        for name in _COUNTS:
            _check_count(name, getattr(self, name))
        if isinstance(self.largest_exponent, bool) or not self.largest_exponent > 0.0:
            raise ValueError(f"largest_exponent is a positive number, got {self.largest_exponent!r}")
        if isinstance(self.rounding, bool) or not 0.0 <= self.rounding <= 1.0:
            raise ValueError(f"rounding is a part of a row, from 0 to 1, got {self.rounding!r}")
        if self.bounds is not None:
            checked_bounds(*self.bounds, family="yeo-johnson")

    @classmethod
    def open(cls, **changes: Any) -> Policy:
        """Tell everything, unmasked: for rows that are no secret, or sites in one process.

        Parameters
        ----------
        **changes
            Parameters of `Policy` that are to be otherwise.
        """
        everything = cls(
            kinds=KINDS,
            masks=False,
            largest_exponent=math.inf,
            rounding=0.0,
            bins=MAX_BINS,
            rows_per_bin=1,
            min_rows=1,
            min_sites=1,
            questions=math.inf,
            sessions=math.inf,
            changing_sites=True,
        )
        return replace(everything, **changes)

    # --- what does not depend on the rows ---------------------------------------------------------------

    def check_question(self, family: str, kind: str) -> None:
        """Refuse, with ValueError, families and kinds of questions that are not told of."""
        if family not in self.families:
            raise ValueError(f"its policy does not allow fits of family {family!r}")
        if kind not in self.kinds:
            raise ValueError(f"its policy does not allow questions of kind {kind!r}, only {', '.join(self.kinds)}")

    def check_sites(self, masked: bool, n_sites: int) -> None:
        """Refuse sums in the open, and under masks among too few sites."""
        if self.masks and not masked:
            raise ValueError("its policy allows masked sums only")
        if masked and n_sites < self.min_sites:
            raise ValueError(f"{n_sites} clients take part; its sums need at least {self.min_sites:g} to hide among")

    def check_cost(self, mu: float) -> None:
        """Refuse noisy counts that with those told before cost more than the budget: `mu` is that of all of them."""
        if self.privacy is None:
            raise ValueError("its policy has no budget for private counts")
        if mu > largest_mu(self.privacy.epsilon, self.privacy.delta):
            raise ValueError(
                f"its policy allows private counts for epsilon {self.privacy.epsilon:g}, delta {self.privacy.delta:g} "
                "in all; these and those told before would cost more"
            )

    def check_exponents(self, lmbda: FloatArray) -> None:
        """Refuse moments at large lambdas."""
        if not (np.abs(lmbda) <= self.largest_exponent).all():
            raise ValueError(f"its policy allows |lambda| up to {self.largest_exponent:g}")

    def check_bins(self, n_bins: NDArray[np.int64]) -> None:
        """Refuse fine grids."""
        if n_bins.max(initial=0) > self.bins:
            raise ValueError(f"its policy allows {self.bins:g} bins a column, the grid has {n_bins.max()}")

    def check_bounds(self, which: NDArray[np.intp], low: FloatArray, high: FloatArray, shift: FloatArray) -> None:
        """Refuse bounds that are no powers of two, unless extremes are told anyway; or that miss the public ones.

        They are bounds of the columns plus their shift, the public ones of the columns themselves.
        """
        if self.bounds is not None:
            own_low, own_high = self.public_bounds(int(which.max(initial=0)) + 1)[:, which] + shift[which]
            if (low > codes_below(own_low)).any() or (high < codes_above(own_high)).any():
                raise ValueError("the bounds of this fit do not contain the public bounds of its policy")
        elif "range" not in self.kinds and not (_are_codes(low) & _are_codes(high)).all():
            raise ValueError("its policy allows bounds that are 0 or powers of two only")

    def public_bounds(self, n_columns: int) -> FloatArray:
        """Bounds of the policy, as two rows of at least so many columns."""
        assert self.bounds is not None
        ends = checked_bounds(*self.bounds, family="yeo-johnson")
        return np.repeat(ends, n_columns, axis=1) if ends.shape[1] == 1 else ends


# --- powers of two ------------------------------------------------------------------------------------


def codes_below(x: FloatArray) -> FloatArray:
    """The largest of 0, the powers of two and their negatives that is at most x."""
    fraction, exponent = np.frexp(np.abs(x))
    below = np.ldexp(0.5, exponent)
    with np.errstate(over="ignore"):
        above = np.where(fraction > 0.5, np.minimum(np.ldexp(1.0, exponent), _LARGEST), below)
    codes: FloatArray = np.where(x > 0.0, below, np.where(x < 0.0, -above, x))
    return codes


def codes_above(x: FloatArray) -> FloatArray:
    """The smallest of 0, the powers of two and their negatives that is at least x."""
    return -codes_below(-np.asarray(x))


def _are_codes(x: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((codes_below(x) == x) | (abs(x) == _LARGEST))


def _check_count(name: str, value: object) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
    if not (whole or value == math.inf):
        raise ValueError(f"{name} is a whole number of at least 1, got {value!r}")
