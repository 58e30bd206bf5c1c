"""A site of a federated fit: answers the server's requests from its own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.by_column import partial_moments_matrix
from powerkern._engine.shifted import shifted
from powerkern._engine.threads import thread_count
from powerkern._estimators.shift import given_shift
from powerkern._input import frames as _frames
from powerkern._input.arguments import is_weightless, weights_of
from powerkern._input.arrays import as_rows, column_label
from powerkern._results.power_fit import PowerFit
from powerkern.federated import secure
from powerkern.federated.account import Account, random_below
from powerkern.federated.ledger import NONCE_BYTES, Ledger, digest_of_rows
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, as_body, digest_of, pack, unpack
from powerkern.federated.policy import Policy, codes_above, codes_below
from powerkern.federated.privacy import Question
from powerkern.federated.recovery import Member, RecoveryError
from powerkern.federated.requests import MomentsRequest, read_moments_request
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import Grid, Range, Sketch, range_of, sketch

FloatArray = NDArray[np.float64]


class Client:
    """One site's rows, and the answers that they give to a `Server`'s requests, within a policy.

    It knows nothing of how messages travel: `answer` takes bytes and gives bytes.

    Parameters
    ----------
    data : (n, p) or (n,) array-like
        The site's rows, as for `powerkern.fit`: NaN is missing. There may be none at all.
    name : str
        What the server and all messages call the site.
    sample_weight : (n,) array-like, or str, optional
        Weights of the rows, or the name of the column of a data frame that holds them.
    column_names : sequence of str, optional
        Names of the columns; default: those of a data frame. All sites must have the same.
    policy : Policy, optional
        What the site is willing to tell; default: ``Policy()``, which is strict, and sends sums under masks only.
        ``Policy.open()`` tells everything.
    secrets : mapping of str to bytes, optional
        A seed of at least 16 secret random bytes for each other site, shared with that site alone
        (`pairwise_secrets` makes some).
    memory : mutable mapping of str to bytes, optional
        Where the client keeps what it must remember between requests: nonces, what was answered, how much was asked;
        default: in this object. Limits of the policy hold as long as this is kept.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Attributes
    ----------
    name : str
        The name.
    n_columns : int
        Number of columns.

    See Also
    --------
    fit_federated : server and clients in one process.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.federated import Client, Server, pairwise_secrets
    >>> rows = np.random.default_rng(0).lognormal(size=(300, 2))
    >>> secrets = pairwise_secrets(["north", "south", "west"])
    >>> parts = zip(secrets, [rows[:100], rows[100:160], rows[160:]])
    >>> clients = [Client(part, name=name, secrets=secrets[name]) for name, part in parts]
    >>> server = Server(list(secrets), family="box-cox", secure=True)
    >>> while not server.done:
    ...     for client in clients:
    ...         server.receive(client.answer(server.request), sender=client.name)
    ...     server.close_round()
    >>> server.fit.lmbda.shape
    (2,)
    """

    def __init__(
        self,
        data: object,
        *,
        name: str,
        sample_weight: ArrayLike | str | None = None,
        column_names: Sequence[str] | None = None,
        policy: Policy | None = None,
        secrets: Mapping[str, bytes] | None = None,
        memory: MutableMapping[str, bytes] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.name = _checked_name(name)
        rows, sample_weight = _frames.without_weights(data, sample_weight)
        self._matrix = as_rows(rows, column_names)
        n, p = self._matrix.values.shape
        if n == 0 or is_weightless(sample_weight, n):  # a missing row says the same
            self._matrix = self._matrix._replace(values=np.full((1, p), np.nan))
            sample_weight = None
        self._sample_weight = sample_weight
        self._weight = weights_of(sample_weight, self._matrix.values.shape[0])
        self._policy = _checked_policy(policy, self.name)
        self._secrets = _checked_secrets(secrets, self.name)
        if self._policy.masks and not self._secrets:
            raise ValueError(
                f"client {self.name!r}: its policy allows masked sums only, which need secrets=...; "
                "policy=Policy.open() tells everything in the open"
            )
        self._n_threads = thread_count(n_threads)
        self._ranges: dict[tuple[str, bytes], Range] = {}
        self._ledger = Ledger({} if memory is None else memory)
        self._answers: dict[tuple[str, int], bytes] = {}
        self._check_public_bounds()

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self._matrix.values.shape[1])

    def answer(self, request: bytes) -> bytes:
        """Answer a request of the server.

        Parameters
        ----------
        request : bytes
            `Server.request`. Asked again, the same answer is given; another request in the same round is refused, for
            two answers under one mask would give away their difference, and so is every request after the rows changed.

        Returns
        -------
        bytes
            For `Server.receive`.

        Raises
        ------
        ProtocolError
            The request is damaged, of another version, not for this client, or asks for more than its policy allows; or
            the data are outside the domain of the family. The text holds no values and may be sent to the server; the
            attribute `detail` names row and value.
        """
        message, digest = unpack(request, SERVER), digest_of(request)
        terms = self._agreed(message, digest)
        rows = digest_of_rows(self._matrix.values, self._weight)
        if self._ledger.rows_changed(rows):
            raise self._error("its rows changed since it told of them, and differences would tell which ones")
        answered = self._ledger.answered(message.session, message.round)
        if answered not in (None, digest.hex()):
            raise self._error(f"another request was answered in round {message.round} already")
        key = (message.session, message.round)
        if answered is not None and key in self._answers:
            return self._answers[key]
        if answered is None:
            self._charge(message, terms, rows)
        body = self._body(message, terms)
        details = self._description() if message.round == 1 else {}
        answer = pack(Message(message.kind, message.session, message.round, self.name, details, body))
        self._ledger.note(message.session, message.round, digest.hex())
        self._answers = {k: v for k, v in self._answers.items() if k[0] == message.session}
        self._answers[key] = answer
        return answer

    def accept(self, message: bytes) -> PowerFit:
        """Read the fit that the server announces at the end.

        Parameters
        ----------
        message : bytes
            `Server.announcement`.

        Returns
        -------
        PowerFit
            The fit of all sites' rows together.

        Raises
        ------
        ProtocolError
            The message is damaged, of another version, no announcement, or of a fit to other columns.
        """
        told = unpack(message, SERVER)
        if told.kind != Kind.FIT:
            raise self._error(f"a {told.kind.name} request is no announcement of a fit; it is for answer()")
        try:
            fit = PowerFit.from_json(str(told.details.get("fit")))
        except (ValueError, OverflowError) as error:
            raise self._error(f"the announcement is {error}") from None
        if fit.n_features != self.n_columns:
            raise self._error(f"the fit has {fit.n_features} columns, the client has {self.n_columns}")
        return fit

    # --- what the policy says, before any look at the rows ----------------------------------------------

    def _agreed(self, request: Message, digest: bytes) -> _Terms:
        """What a request asks for, once it is known that the policy allows it."""
        family, names = request.details.get("family"), self._names(request)
        if not isinstance(family, str) or family not in FAMILIES:
            raise self._error(f"the request is malformed: there is no family {family!r}")
        masked = request.details.get("secure") is True
        resilient = masked and request.details.get("recovery") is True
        if request.kind not in _QUESTIONS or (request.kind == Kind.UNMASK and not resilient):
            raise self._error(f"a message of kind {request.kind.name} is no request")
        try:
            shift = self._shift(request, family)
            self._policy.check_sites(masked, len(names))
            if masked and not self._secrets:
                raise ValueError("it has no secrets to mask sums with; make the Client with secrets= (see SiteKey)")
            if request.kind == Kind.OPENING:
                rescue = self._rescue(request, names, {}) if resilient else None
                return _Terms(family, shift, masked, names, {}, b"", None, None, None, rescue)
            if request.kind != Kind.UNMASK:
                self._policy.check_question(family, _QUESTIONS[request.kind])
            if masked and request.kind == Kind.RANGE:
                raise ValueError("a range is no sum and cannot be masked; ask for powers of two")
            peers = self._peers(names) if masked else {}
            openings = self._openings(request, names, resilient) if masked else {}
            context = secure.context_of(request.session, openings, digest) if masked else b""
            rescue = self._rescue(request, names, openings) if resilient else None
            grid = self._grid(request, shift) if request.kind == Kind.SKETCH else None
            moments = self._moments_request(request, family, shift) if request.kind == Kind.MOMENTS else None
            if request.kind == Kind.COUNTS and shift.any():
                raise ValueError("private counts are of columns as they are, without a shift")
            counts = self._counts_request(request, family, masked) if request.kind == Kind.COUNTS else None
        except ValueError as error:
            text = str(error)
        else:
            return _Terms(family, shift, masked, names, peers, context, grid, moments, counts, rescue)
        raise self._error(text)

    def _names(self, request: Message) -> list[str]:
        names = request.details.get("clients")
        if (
            not isinstance(names, list)
            or not all(isinstance(name, str) for name in names)
            or self.name not in names
            or len(set(names)) < len(names)
        ):
            raise self._error(f"it is not among the clients of this fit: {names}")
        return names

    def _shift(self, request: Message, family: str) -> FloatArray:
        """What is added to each column: all that is told in this fit is of the sums."""
        try:
            return given_shift(request.details.get("shift", 0.0), family, self.n_columns)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the request is malformed: {error}") from None

    def _peers(self, names: list[str]) -> dict[str, bytes]:
        """Seeds shared with the other clients that take part."""
        strangers = [name for name in names if name != self.name and name not in self._secrets]
        if strangers:
            raise ValueError(f"it shares no secret with {', '.join(map(repr, strangers))}")
        return {name: self._secrets[name] for name in names if name != self.name}

    def _openings(self, request: Message, names: list[str], resilient: bool) -> dict[str, str]:
        """What masks are bound to; our own nonce must be in it, so that no mask is used twice.

        All clients opened the fit; where some may be lost, those that did.
        """
        openings = request.details.get("openings")
        if (
            not isinstance(openings, dict)
            or self.name not in openings
            or not (openings.keys() <= set(names) if resilient else openings.keys() == set(names))
            or not all(isinstance(text, str) and len(text) >= 2 * NONCE_BYTES for text in openings.values())
        ):
            raise ValueError("the request is malformed: it does not say what all clients opened the fit with")
        if not self._ledger.is_known(request.session):
            raise ValueError("it has not opened this fit; begin anew")
        nonces = {name: text[: 2 * NONCE_BYTES] for name, text in openings.items()}
        if nonces[self.name] != self._ledger.nonce(request.session):
            raise ValueError("its nonce is not the one that it opened this fit with")
        if len(set(nonces.values())) < len(nonces):
            raise ValueError("two clients have one nonce")
        return openings

    def _rescue(self, request: Message, names: list[str], openings: dict[str, str]) -> _Rescue:
        """The part of this client in a total that survives the loss of others."""
        own, session = self._ledger.noise_key(request.session), request.session.encode()
        member = Member(self.name, self._peers(names), own, session)
        sharings = {name: _sharing_in(text) for name, text in openings.items()}
        answered = _names_in(request.body.tobytes()) if request.kind == Kind.UNMASK else list(openings)
        if request.kind != Kind.OPENING:
            self._policy.check_sites(True, len(answered))
        return _Rescue(member, sharings, answered)

    def _grid(self, request: Message, shift: FloatArray) -> Grid:
        try:
            grid = Grid.from_bytes(request.body.tobytes())
        except ValueError as error:
            raise ValueError(f"the request is malformed: {error}") from None
        other = grid.n_features != self.n_columns or grid.family != request.details["family"]
        if other or grid.shift.any():  # the shift is the request's; the grid is for the sums
            raise ValueError("the request is malformed: a grid for other columns")
        self._policy.check_bins(grid.n_bins)
        which = np.flatnonzero(grid.n_bins)
        self._policy.check_bounds(which, grid.x_min[which], grid.x_max[which], shift)
        return grid

    def _moments_request(self, request: Message, family: str, shift: FloatArray) -> MomentsRequest:
        try:
            asked = read_moments_request(request.body, self.n_columns, FAMILIES[family])
        except ValueError as error:
            raise ValueError(f"the request is malformed: {error}") from None
        self._policy.check_exponents(asked.lmbda)
        self._policy.check_bounds(asked.which, asked.low, asked.high, shift)
        return asked

    def _counts_request(self, request: Message, family: str, masked: bool) -> Question:
        if not masked:
            raise ValueError("private counts are told under masks only, which hide the noise of each client")
        if self._sample_weight is not None:
            raise ValueError("its rows have weights, of which private counts know nothing")
        try:
            return Question.from_body(request.body, family, self.n_columns)
        except ValueError as error:
            raise ValueError(f"the request is malformed: {error}") from None

    def _charge(self, request: Message, terms: _Terms, rows: str) -> None:
        """Count the questions of a request, against the limits of the policy."""
        if request.kind == Kind.OPENING:
            return
        questions = 1 if terms.moments is None else terms.moments.at.shape[1]
        questions *= request.kind != Kind.UNMASK
        if self._ledger.sessions_told(request.session) > self._policy.sessions:
            raise self._error(f"its policy allows {self._policy.sessions:g} fits of its rows; they have been")
        if self._ledger.asked(request.session) + questions > self._policy.questions:
            raise self._error(f"its policy allows {self._policy.questions:g} questions in a fit; this is one more")
        if self._ledger.shift_changed(request.session, terms.shift.tolist()):
            raise self._error("the shift is not the one that this fit began with, and extremes would show; begin anew")
        sites = terms.sites_told_of(request.kind)
        if sites is not None and not self._policy.changing_sites and self._ledger.sites_changed(sites):
            raise self._error("it took part in a fit with other sites; the difference would tell of those that changed")
        if terms.rescue is not None and self._ledger.is_unmasked(request.session):
            raise self._error("masks of this fit were told of already, for one set of sites; begin anew")
        if request.kind == Kind.UNMASK:
            self._ledger.note_unmasked(request.session)
        if terms.counts is not None:
            self._spend(terms.counts)
        self._ledger.charge(request.session, questions, rows, sites, terms.shift.tolist())

    def _spend(self, asked: Question) -> None:
        account = Account(self._ledger.spent())
        account.spend(asked.cost, 1.0)
        try:
            self._policy.check_cost(account.mu)
        except ValueError as error:
            text = str(error)
        else:
            return self._ledger.spend(account.mu)
        raise self._error(text)

    # --- answers ----------------------------------------------------------------------------------------

    def _body(self, request: Message, terms: _Terms) -> NDArray[Any]:
        if request.kind == Kind.OPENING:
            sharing = terms.rescue.member.sharing() if terms.rescue else b""
            return as_body(bytes.fromhex(self._ledger.nonce(request.session)) + sharing)
        if request.kind == Kind.UNMASK:
            return self._unmasking(terms)
        if terms.counts is not None:
            return self._counts(request, terms.counts, terms)
        found = self._checked_range(terms.family, terms.shift)
        if request.kind == Kind.RANGE:
            return as_body(found.to_bytes())
        if request.kind == Kind.CODE:
            return self._codes(found, terms.shift)
        if terms.moments is not None:
            moments = self._moments(terms.moments, terms, found)
            return self._masked_moments(moments, terms) if terms.masked else moments
        own = self._sketch(request, terms, found)
        if terms.masked:
            return self._masked(secure.encode_words(own.words()), terms)
        return as_body(own.to_bytes())

    def _counts(self, request: Message, asked: Question, terms: _Terms) -> secure.Digits:
        below = random_below(self._ledger.noise_key(request.session) + terms.context)
        told = asked.answer(self._matrix.values, len(terms.names), below)
        return self._masked(secure.encode_words(told), terms)

    def _masked(self, digits: secure.Digits, terms: _Terms) -> secure.Digits:
        if terms.rescue is None:
            return secure.masked(digits, self.name, terms.peers, terms.context)
        try:
            return terms.rescue.member.masked(digits, terms.rescue.sharings, terms.context)
        except RecoveryError as error:
            text = str(error)
        raise self._error(text)

    def _unmasking(self, terms: _Terms) -> NDArray[Any]:
        assert terms.rescue is not None
        try:
            return as_body(terms.rescue.member.unmasking(terms.rescue.sharings, terms.rescue.answered))
        except RecoveryError as error:
            text = str(error)
        raise self._error(text)

    def _codes(self, found: Range, shift: FloatArray) -> FloatArray:
        """Powers of two about the extremes of each column, or those of the policy's bounds; NaN without values."""
        ends = np.array([found.x_min, found.x_max])
        if self._policy.bounds is not None:
            ends = self._policy.public_bounds(self.n_columns)[:, : self.n_columns] + shift
        ends = np.where(found.count > 0.0, ends, np.nan)
        return np.ascontiguousarray(np.array([codes_below(ends[0]), codes_above(ends[1])]).T)

    def _sketch(self, request: Message, terms: _Terms, found: Range) -> Sketch:
        grid = terms.grid
        assert grid is not None
        self._check_weight(request.details.get("max_weight"), found)
        self._check_inside(np.arange(self.n_columns), grid.x_min, grid.x_max, found, terms.shift)
        own = self._sketched(grid, terms.shift, self._sample_weight)
        if self._policy.rows_per_bin > 1:
            rows = own if self._sample_weight is None else self._sketched(grid, terms.shift, self._weight > 0.0)
            in_bins = np.ldexp(rows.sums[:, 0].astype(np.float64), np.repeat(grid.quantum, grid.n_bins))
            if ((in_bins > 0.0) & (in_bins < self._policy.rows_per_bin - 0.5)).any():
                raise self._error(f"a bin has fewer than {self._policy.rows_per_bin:g} rows, too few to report")
        return own

    def _sketched(self, grid: Grid, shift: FloatArray, weight: ArrayLike | None) -> Sketch:
        moved = Grid(grid.family, grid.table, grid.column_names, grid.was_vector, shift)
        try:
            own = sketch(self._matrix.values, moved, sample_weight=weight, n_threads=self._n_threads)
            return Sketch(grid, own.sums, own.roundings)
        except ValueError as error:
            detail = str(error)
        raise self._error("its rows do not fit on the grid of this fit", detail)

    def _moments(self, asked: MomentsRequest, terms: _Terms, found: Range) -> FloatArray:
        self._check_inside(asked.which, asked.low, asked.high, found, terms.shift)
        frames = np.zeros((self.n_columns, partial_moments.N_SCALING))
        at = np.full((self.n_columns, asked.at.shape[1]), np.nan)
        frames[asked.which], at[asked.which] = asked.frames, asked.at
        values, code = shifted(self._matrix.values, terms.shift), FAMILIES[terms.family]
        moments = partial_moments_matrix(values, code, frames, at, self._weight, self._n_threads)[asked.which]
        if not np.isfinite(moments).all():
            raise self._error("moments at these exponents are beyond float64")
        return moments

    def _masked_moments(self, moments: FloatArray, terms: _Terms) -> NDArray[Any]:
        try:
            digits = secure.encode(secure.sums_of_moments(moments, self._policy.rounding))
        except OverflowError:
            digits = None
        if digits is None:
            raise self._error("sums are too large to be masked; divide the weights by their mean over all sites")
        return self._masked(digits, terms)

    # --- what is refused --------------------------------------------------------------------------------

    def _error(self, text: str, detail: str | None = None) -> ProtocolError:
        who = f"client {self.name!r}"
        return ProtocolError(f"{who}: {text}", None if detail is None else f"{who}: {detail}")

    def _description(self) -> dict[str, Any]:
        return {
            "n_columns": self.n_columns,
            "column_names": self._matrix.names,
            "rounding": float(self._policy.rounding),
            "largest_exponent": float(min(self._policy.largest_exponent, np.finfo(np.float64).max)),
        }

    def _check_public_bounds(self) -> None:
        """Rows beyond the policy's bounds are told of here, at the site, and never to the server."""
        if self._policy.bounds is None:
            return
        ends = self._policy.public_bounds(self.n_columns)
        if ends.shape[1] != self.n_columns:
            raise ValueError(f"client {self.name!r}: bounds of {ends.shape[1]} columns, and rows of {self.n_columns}")
        values = self._matrix.values[self._weight > 0.0] if self._weight.size else self._matrix.values
        with np.errstate(invalid="ignore"):
            outside = ((values < ends[0]) | (values > ends[1])).any(axis=0)
        if outside.any():
            label = column_label(int(np.argmax(outside)), self._matrix.names)
            raise ValueError(f"client {self.name!r}: {label} has values beyond the bounds of its policy")

    def _checked_range(self, family: str, shift: FloatArray) -> Range:
        """The range of the columns plus their shift, once it is known that all may be told of."""
        key = (family, shift.tobytes())
        if key not in self._ranges:
            found = self._range(family, shift)
            few = np.flatnonzero((found.count > 0) & (found.count < self._policy.min_rows))
            if few.size:
                label = column_label(int(few[0]), self._matrix.names)
                raise self._error(f"{label} has fewer than {self._policy.min_rows:g} values, too few to report")
            self._ranges[key] = found
        return self._ranges[key]

    def _range(self, family: str, shift: FloatArray) -> Range:
        try:
            found = range_of(
                self._matrix.values,
                family,
                sample_weight=self._sample_weight,
                shift=shift,
                column_names=self._matrix.names,
                n_threads=self._n_threads,
            )
            return Range(family, found.table, found.column_names, found.was_vector)
        except ValueError as error:
            detail = str(error)
        column = detail.partition(", row")[0] if ", row" in detail else "a column"
        domain = f"{family} with this shift" if shift.any() else family
        raise self._error(f"{column} has values outside the domain of {domain}; its own log names one", detail)

    def _check_weight(self, largest: object, found: Range) -> None:
        """Refuse, by powers of two, more rows than a sketch has room for."""
        if not isinstance(largest, float):
            return
        limit = codes_above(np.array(largest))
        if (codes_above(found.n_obs) > limit).any():
            raise self._error(
                f"a column has more values, or weight, than {limit:g}; begin anew with a larger max_weight"
            )

    def _check_inside(
        self, which: NDArray[np.intp], low: FloatArray, high: FloatArray, found: Range, shift: FloatArray
    ) -> None:
        outside = (found.count[which] > 0) & ~((low <= found.x_min[which]) & (found.x_max[which] <= high))
        if outside.any():
            k = int(np.argmax(outside))
            label, moved = column_label(int(which[k]), self._matrix.names), shift[which[k]]
            ends = f"{low[k] - moved:g} to {high[k] - moved:g}"
            raise self._error(f"{label} has values outside {ends}, the bounds of this fit")


_QUESTIONS = {
    Kind.OPENING: "opening",
    Kind.CODE: "code",
    Kind.RANGE: "range",
    Kind.MOMENTS: "moments",
    Kind.SKETCH: "sketch",
    Kind.COUNTS: "counts",
    Kind.UNMASK: "unmask",
}


class _Terms(NamedTuple):
    """What a request asks for; seeds and what they are bound to, where sums are masked."""

    family: str
    shift: FloatArray
    masked: bool
    names: list[str]
    peers: dict[str, bytes]
    context: bytes
    grid: Grid | None
    moments: MomentsRequest | None
    counts: Question | None
    rescue: _Rescue | None

    def sites_told_of(self, kind: Kind) -> list[str] | None:
        """Sites whose total is known once this is answered; None if none is."""
        if self.rescue is not None:
            return self.rescue.answered if kind == Kind.UNMASK else None
        return self.names if self.masked else None


class _Rescue(NamedTuple):
    """A client's part in a total that survives the loss of others: theirs, and who takes part or has answered."""

    member: Member
    sharings: dict[str, bytes]
    answered: list[str]


def _sharing_in(opening: str) -> bytes:
    """What follows the nonce in what a client opened a fit with."""
    try:
        return bytes.fromhex(opening[2 * NONCE_BYTES :])
    except ValueError:
        raise ValueError("the request is malformed: an opening that is not hexadecimal") from None


def _names_in(text: bytes) -> list[str]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("the request is malformed: it does not say who answered")
    return names


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"name is what others call the client, a string, got {name!r}")
    return name


def _checked_policy(policy: object, name: str) -> Policy:
    if policy is not None and not isinstance(policy, Policy):
        raise TypeError(f"client {name!r}: policy must be a Policy, got {type(policy).__name__}")
    return Policy() if policy is None else policy


def _checked_secrets(given: Mapping[str, bytes] | None, name: str) -> dict[str, bytes]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"client {name!r}: secrets must be a dict, name of another client to bytes")
    for other, seed in (given or {}).items():
        if not isinstance(seed, bytes) or len(seed) < secure.SEED_BYTES:
            raise ValueError(
                f"client {name!r}: the secret shared with {other!r} must be at least {secure.SEED_BYTES} bytes"
            )
    seeds = {other: seed for other, seed in (given or {}).items() if other != name}
    if len(set(seeds.values())) < len(seeds):
        raise ValueError(
            f"client {name!r}: two others share one secret; one key for several pairs would send sums in the clear"
        )
    return seeds
