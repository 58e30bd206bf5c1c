"""The server of a federated fit: asks the clients, checks and merges what they answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._estimators.limits import lambda_limit
from powerkern._estimators.shift import given_shift
from powerkern._input.arguments import given_lambdas
from powerkern._input.arrays import as_choice, as_flag, as_names, as_reals, column_label, column_labels
from powerkern._input.messages import warn
from powerkern._results.power_fit import PowerFit, warn_overflow, warn_unfitted
from powerkern._typing import Bounds
from powerkern.federated import recovery
from powerkern.federated.ledger import NONCE_BYTES
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, as_body, digest_of, pack, unpack
from powerkern.federated.policy import codes_above, codes_below
from powerkern.federated.privacy import Privacy
from powerkern.federated.protocol import Limits, MergeError, Outcome, Plan, Request, conversation
from powerkern.federated.requests import MOST_POINTS
from powerkern.federated.search import METHODS
from powerkern.federated.secure import context_of
from powerkern.kernels.results import STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import Range, checked_bounds

FloatArray = NDArray[np.float64]

PROTOCOLS = ("sketch", "rounds")

_NOTHING = np.empty(0)
#: A range and three evaluations.
_FEWEST_ROUNDS = 5
#: Weight of a client, at most, where it is announced, and where it is not.
_MAX_WEIGHT, _MAX_UNANNOUNCED = 1e9, 1e6


#: Questions whose answers are sums.
_SUMS = (Kind.MOMENTS, Kind.SKETCH, Kind.COUNTS)


class _Recovery(NamedTuple):
    """Answers to the first question for sums, still under the masks of each client, and what these are bound to."""

    answers: dict[str, NDArray[Any]]
    context: bytes


def _read_unmasking(message: Message, who: int) -> bytes:
    return message.body.tobytes()


class Server:
    """Fits power transforms to rows that stay with several clients.

    It knows nothing of how messages travel: `request` is bytes for every client, `receive` takes each one's answer, and
    `close_round` merges the answers once all are there. Nothing is merged before that, and a refused answer changes
    nothing.

    Parameters
    ----------
    clients : sequence of str
        Names of all clients that take part.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    protocol : {"sketch", "rounds"}, optional
        "sketch", the default in the open: ranges, then a sketch (`powerkern.sketch`) of each column: two rounds. Those
        that it does not resolve are then treated as by "rounds"; `unresolved` lists them.
        "rounds", the default under masks, as it tells less: ranges, then moments at exponents of the server's choice
        until lambda is found.
    search : {"newton", "brent"}, default "newton"
        How lambda is looked for: on the derivative of the likelihood, or first by Brent's method on its values, as
        published, which takes more rounds. Both end on the derivative, for values alone give lambda to 1e-8.
    grid : int, default 0
        Ask for so many exponents at once first. Saves rounds and costs bytes.
    standardize, lmbda, shift, ymax
        As in `powerkern.fit`; all bounds are of the values without their shift. Extremes that are not told (`bounds`,
        `secure`) are taken to be the bounds.
    lmbda_bounds : (low, high), optional
        Bounds of lambda: what is ``bounds=`` in `powerkern.fit`. Here `bounds` are those of the values.
    column_names : sequence of str, optional
        Names that the clients' columns must have; default: those of the first client.
    bounds : (low, high), optional
        Arrays of one number per column (numbers, for one column), between which all values are known to lie without
        looking at them: the range is not asked for then. Values should fill a good part of their bounds.
    secure : bool, default False
        Ask for sums under masks. A range is no sum: without `bounds` every client tells the powers of two about its
        extremes; with `bounds` these are widened to powers of two.
    recover : bool, default False
        With `secure`: go on without clients that are lost (`lose`), in one more round. More than two thirds must be
        left, and the first total be untold: with that of a later question, the difference would tell of those lost.
    privacy : Privacy, optional
        Make a differentially private fit, of noisy counts in bins of the `bounds`; with `secure`. Clients add the
        noise, enough of it if half of them add theirs and tell nobody.
    max_weight : float, optional
        The largest number of rows, or total weight, that a client may have; more is refused. Default: 1e9; 1e6 where it
        is not announced (`bounds`, `secure`), for sums of a sketch are then rounded to about 1e-18 of this times the
        number of clients.
    max_rounds : int, default 30
        Most rounds in all. A column that is not done by then has the status NOT_CERTIFIED.

    Attributes
    ----------
    round : int
        The number of the open round, from 1.
    bytes_sent, bytes_received : int
        Bytes of all requests, to all clients, and of all accepted answers.
    unresolved : list of int
        Columns that the sketch did not resolve, and for which moments were asked.

    See Also
    --------
    Client : has an example of the whole conversation.
    """

    def __init__(
        self,
        clients: Sequence[str],
        *,
        family: str = "yeo-johnson",
        protocol: str | None = None,
        search: str = "newton",
        grid: int = 0,
        standardize: bool = True,
        lmbda: ArrayLike | None = None,
        shift: ArrayLike = 0.0,
        ymax: float | None = None,
        lmbda_bounds: Bounds | None = None,
        column_names: Sequence[str] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        secure: bool = False,
        recover: bool = False,
        privacy: Privacy | None = None,
        max_weight: float | None = None,
        max_rounds: int = 30,
    ) -> None:
        self._names = _checked_names(clients)
        self._family = as_choice("family", family, FAMILIES)
        self._standardize, self._secure = as_flag("standardize", standardize), as_flag("secure", secure)
        _check_counts(grid, max_rounds)
        self._announced = bounds is None and not secure
        self._max_weight = _checked_max_weight(max_weight, _MAX_WEIGHT if self._announced else _MAX_UNANNOUNCED)
        if as_flag("recover", recover) and not secure:
            raise ValueError("recover=True is of sums under masks; it needs secure=True")
        self._shift = _checked_shift(shift, self._family)
        if privacy is not None:
            settled = lmbda is not None or ymax is not None or lmbda_bounds is not None
            _check_private(secure and bounds is not None and not settled, self._shift)
        coarse = secure and privacy is None
        limits = None if bounds is None else _limits(bounds, self._family, self._shift, coarse)
        self._columns, self._n_columns = _given_columns(column_names, limits, self._shift)
        _check_lambda(lmbda, ymax, lmbda_bounds, self._n_columns, standardize)
        self._is_given = lmbda is not None
        self._recovery = _Recovery({}, b"") if recover else None
        self._limits = Limits()
        plan = Plan(
            self._family,
            self._shift,
            as_choice("protocol", protocol or ("rounds" if secure else "sketch"), PROTOCOLS),
            as_choice("search", search, METHODS),
            grid,
            limits,
            secure,
            self._max_weight,
            max_rounds,
            len(self._names),
            self._standardize,
            lmbda,
            ymax,
            lmbda_bounds,
            privacy,
            self._limits,
        )
        self._begin(plan)

    def _begin(self, plan: Plan) -> None:
        """Open the first round of a new session."""
        self._session = secrets.token_hex(16)
        self._every = list(self._names)
        self._descriptions: dict[str, dict[str, Any]] = {}
        self._read: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._openings: dict[str, str] = {}
        self._fit: PowerFit | None = None
        self._failure = ""
        self.unresolved: list[int] = []
        self.round = 0
        self.bytes_sent = self.bytes_received = 0
        self._talk = conversation(plan)
        self._open(next(self._talk))

    # --- the conversation -------------------------------------------------------------------------------

    @property
    def request(self) -> bytes:
        """Message for every client in the open round."""
        if self.done:
            raise ProtocolError("the fit is done; nothing is asked any more")
        return self._request_bytes

    @property
    def missing(self) -> list[str]:
        """Names of the clients that have not answered in the open round."""
        return [] if self.done else [name for name in self._names if name not in self._read]

    @property
    def done(self) -> bool:
        """Whether `fit` is there."""
        return self._fit is not None

    @property
    def fit(self) -> PowerFit:
        """The fit of all clients' rows together."""
        if self._fit is None:
            raise ProtocolError(f"there is no fit yet: round {self.round} is open")
        return self._fit

    @property
    def announcement(self) -> bytes:
        """Message that brings the fit to the clients, for `Client.accept`."""
        return self._message(Kind.FIT, {"fit": self.fit.to_json()}, _NOTHING)

    def receive(self, message: bytes, *, sender: str) -> None:
        """Take one client's answer.

        Parameters
        ----------
        message : bytes
            What `Client.answer` gave.
        sender : str
            Name of the client that the transport got it from.

        Raises
        ------
        ProtocolError
            The message is refused: damaged, of another version, from a stranger, a duplicate, late, with values that
            are not finite or make no sense. The sentence names the client, and nothing has changed.
        """
        if sender not in self._names:
            raise ProtocolError(f"client {sender!r} takes no part in this fit")
        answer = unpack(message, sender)
        if answer.session != self._session:
            raise _error(sender, "the message belongs to another fit")
        if self.done or answer.round < self.round:
            raise _error(sender, f"the message is late: it answers round {answer.round}, which is closed")
        if answer.round > self.round or answer.kind != self._asked.kind:
            raise _error(sender, f"the message does not answer what round {self.round} asks")
        if sender in self._read:
            raise _error(sender, f"it has answered round {self.round} already; the second answer is refused")
        self._check_description(answer)
        try:
            read = self._asked.read(answer, sorted(self._every).index(sender))
        except ValueError as error:
            raise _error(sender, str(error)) from None
        if isinstance(read, Range) and read.n_features != answer.details["n_columns"]:
            raise _error(sender, f"its range has {read.n_features} columns, not {answer.details['n_columns']}")
        self._descriptions[sender], self._read[sender], self._sizes[sender] = answer.details, read, len(message)

    def close_round(self) -> None:
        """Merge the answers, and open the next round or finish the fit.

        Raises
        ------
        ProtocolError
            Clients have not answered. The fit cannot go on without them, for the answers of earlier rounds (and masks)
            are theirs too: ask them again, or begin anew with a `Server` for the others. Or the answers, each
            of them sensible, make no sense together: the fit is at an end.
        """
        if self._failure:
            raise ProtocolError(self._failure)
        if self.missing:
            who = ", ".join(map(repr, self.missing))
            raise ProtocolError(
                f"round {self.round} cannot be closed: no answer from client {who}; ask again, or start anew without"
            )
        self._settle_columns()
        self.bytes_received += sum(self._sizes.values())
        if self._asked.kind == Kind.OPENING:
            self._openings = {name: self._read[name].text for name in self._names}
        try:
            request = self._next_request()
        except StopIteration as end:
            self._finish(end.value)
        except MergeError as error:
            self._failure = f"round {self.round} cannot be merged: {error}; start anew"
            raise ProtocolError(self._failure) from None
        else:
            self._open(request)

    def lose(self, name: str) -> None:
        """Go on without a client that does not answer.

        What it has sent, or sends late, stays under its mask for good.

        Parameters
        ----------
        name : str
            One of `missing`.

        Raises
        ------
        ProtocolError
            The server is not one with ``recover=True``; a total has been told; too few would be left; or it is not
            this client that is missing.
        """
        if self._recovery is None:
            raise ProtocolError(
                f"the fit cannot go on without client {name!r}: "
                + ("its masks, or a total that it is in, are needed" if self._secure else "recover=True is for that")
            )
        if name not in self.missing:
            raise ProtocolError(f"client {name!r} is not missing in round {self.round}")
        if len(self._names) <= (least := recovery.threshold(len(self._every))):
            raise ProtocolError(f"without client {name!r} fewer than {least} of {len(self._every)} clients are left")
        self._names = [other for other in self._names if other != name]

    def _next_request(self) -> Request:
        """What the conversation asks next, given the answers; before that, what takes the masks off the first total."""
        answers = {name: self._read[name] for name in sorted(self._names)}
        if self._recovery is None:
            return self._talk.send(list(answers.values()))
        if self._asked.kind in _SUMS:
            self._recovery = _Recovery(
                answers, context_of(self._session, self._openings, digest_of(self._request_bytes))
            )
            return Request(Kind.UNMASK, as_body(json.dumps(list(answers)).encode()), _read_unmasking)
        if self._asked.kind == Kind.UNMASK:
            return self._talk.send([self._total(self._recovery, answers)])
        return self._talk.send(list(answers.values()))

    def _total(self, pending: _Recovery, unmaskings: dict[str, bytes]) -> NDArray[Any]:
        """The first total; from here on the clients that are in it cannot be lost."""
        n = 2 * NONCE_BYTES
        sharings = {name: bytes.fromhex(text[n:]) for name, text in self._openings.items()}
        try:
            total = recovery.total(self._every, sharings, pending.answers, unmaskings, pending.context)
        except recovery.RecoveryError as error:
            raise MergeError(str(error)) from None
        self._names, self._recovery = list(pending.answers), None
        self._openings = {name: self._openings[name][:n] for name in self._names}
        return total

    def _open(self, request: Request) -> None:
        self._asked = request
        self._read, self._sizes = {}, {}
        self.round += 1
        details: dict[str, Any] = {"family": self._family, "clients": self._names, "secure": self._secure}
        if self._recovery is not None:
            details.update(clients=self._every, recovery=True)
        if self._shift.any():
            details["shift"] = self._shift.tolist()
        if not self._announced:
            details["max_weight"] = self._max_weight
        if self._openings:
            details["openings"] = self._openings
        self._request_bytes = self._message(request.kind, details, request.body)
        self.bytes_sent += len(self._names) * len(self._request_bytes)

    def _message(self, kind: Kind, details: dict[str, Any], body: NDArray[Any]) -> bytes:
        return pack(Message(kind, self._session, self.round, SERVER, details, body))

    def _finish(self, outcome: Outcome) -> None:
        results, sums, self.unresolved, cut = outcome
        self._read = {}
        self._fit = PowerFit(
            self._family, results, standardize=self._standardize, column_names=self._columns, sums=sums
        )
        warn_unfitted(results[:, STATUS], self._columns)
        if cut:
            text = (
                f"{column_labels(np.array(cut), self._columns)}: the best lambda is beyond +-{self._limits.exponent:g}"
            )
            warn(f"{text}, the limit of the sites' policies; lambda is at that limit")
        if self._is_given and not self._standardize:
            warn_overflow(self._fit)

    # --- what is refused --------------------------------------------------------------------------------

    def _check_description(self, answer: Message) -> None:
        """Whether a client has the columns that the others have; it says so in the first round."""
        if self.round > 1:
            return
        n, names = answer.details.get("n_columns"), answer.details.get("column_names")
        if type(n) is not int or n < 1 or not _are_names(names, n):
            raise _error(answer.sender, "the message is malformed: it does not say which columns it is about")
        largest = answer.details.get("largest_exponent")
        if not isinstance(largest, float) or not 0.0 < largest < np.inf:
            raise _error(answer.sender, "the message is malformed: it does not say its limit of |lambda|")
        known, wanted = self._known_columns()
        if known is not None and n != known:
            raise _error(answer.sender, f"it has {n} columns, the fit has {known}")
        if wanted is not None and names is not None and names != wanted:
            j = next(j for j in range(n) if names[j] != wanted[j])
            raise _error(answer.sender, f"{column_label(j, names)} is {wanted[j]!r} in the fit; reorder or rename it")

    def _known_columns(self) -> tuple[int | None, list[str] | None]:
        """Number and names of the columns, as settled or as the first clients to answer say."""
        told = [self._descriptions[name] for name in self._read] if self.round == 1 else []
        n = self._n_columns or next((one["n_columns"] for one in told), None)
        names = self._columns or next((one["column_names"] for one in told if one["column_names"]), None)
        return n, names

    def _settle_columns(self) -> None:
        self._n_columns, self._columns = self._known_columns()
        if self.round == 1:
            self._limits.exponent = min(self._descriptions[name]["largest_exponent"] for name in self._read)


def _error(client: str, text: str) -> ProtocolError:
    return ProtocolError(f"client {client!r}: {text}")


# --- checks -------------------------------------------------------------------------------------------


def _checked_names(clients: Sequence[str]) -> list[str]:
    names = list(clients)
    if isinstance(clients, str) or not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError("clients is a sequence of names, one a client")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"clients has {twice!r} more than once; give every client a name of its own")
    return names


def _check_counts(grid: int, max_rounds: int) -> None:
    if isinstance(grid, bool) or not isinstance(grid, int) or not 0 <= grid <= MOST_POINTS:
        raise ValueError(f"grid is a number of points, 0 to {MOST_POINTS}, got {grid!r}")
    if not isinstance(max_rounds, int) or max_rounds < _FEWEST_ROUNDS:
        raise ValueError(f"max_rounds must be a whole number of at least {_FEWEST_ROUNDS}, got {max_rounds!r}")


def _given_columns(
    names: Sequence[str] | None, limits: FloatArray | None, shift: FloatArray
) -> tuple[list[str] | None, int | None]:
    """Names of the columns, and how many the fit has, as bounds, names or a shift for each say."""
    named = None if names is None else as_names(names, len(names))
    known = None if named is None else len(named)
    if limits is not None:
        if known not in (None, limits.shape[1]):
            raise ValueError(f"bounds are of {limits.shape[1]} columns, column_names are {known}")
        known = int(limits.shape[1])
    if known is not None:
        given_shift(shift, "box-cox", known)
    return named, shift.size if known is None and shift.ndim else known


def _check_lambda(
    lmbda: ArrayLike | None, ymax: float | None, bounds: Bounds | None, n_columns: int | None, standardize: bool
) -> None:
    """Refuse what makes no sense, before anybody is asked."""
    lambda_limit(ymax, bounds, n_columns or _length_of(bounds), standardize, name="lmbda_bounds")
    if lmbda is not None:
        given_lambdas(lmbda, n_columns or np.size(lmbda))


def _checked_max_weight(max_weight: object, usual: float) -> float:
    """The largest weight of a client, or the usual one."""
    if max_weight is None:
        return usual
    if not isinstance(max_weight, int | float | np.number) or not 0.0 < max_weight < np.inf:
        raise ValueError(f"max_weight must be a positive number, got {max_weight!r}")
    return float(max_weight)


def _check_private(possible: bool, shift: FloatArray) -> None:
    """Refuse what a differentially private fit cannot have."""
    if not possible:
        raise ValueError(
            "privacy= needs secure=True and bounds=(low, high), and does not go with lmbda=, ymax= or lmbda_bounds="
        )
    if shift.any():
        raise ValueError("privacy= does not go with shift=; add the shift to the rows at the clients")


def _checked_shift(shift: ArrayLike, family: str) -> FloatArray:
    """A shift for all columns or one for each, how many there may be."""
    given = as_reals("shift", shift)
    given_shift(given, family, max(given.size, 1))
    return given


def _limits(bounds: Any, family: str, shift: FloatArray, coarse: bool) -> FloatArray:
    """Bounds of the columns plus their shift, as two rows, of powers of two if they are to be coarse."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError("bounds must be (low, high): numbers, or one a column") from None
    ends = _shifted_bounds(low, high, shift) if shift.any() else checked_bounds(low, high, family)
    return np.array([codes_below(ends[0]), codes_above(ends[1])]) if coarse else ends


def _length_of(bounds: Bounds | None) -> int:
    """For how many columns there are bounds."""
    ends: Any = () if bounds is None else bounds
    return max((np.size(end) for end in ends), default=1)


def _shifted_bounds(low: ArrayLike, high: ArrayLike, shift: FloatArray) -> FloatArray:
    ends = checked_bounds(low, high, "yeo-johnson")
    moved = given_shift(shift, "box-cox", ends.shape[1])
    if not (ends[0] > -moved).all():
        raise ValueError("bounds must be above -shift in every column, where shifted Box-Cox is defined")
    low, high = ends + moved
    return checked_bounds(low, high, "box-cox")


def _are_names(names: object, n: int) -> bool:
    return names is None or (isinstance(names, list) and len(names) == n and all(isinstance(v, str) for v in names))
