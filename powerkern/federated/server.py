"""The server of a federated fit: asks the clients, checks and merges what they answer."""

from __future__ import annotations

import math
import secrets
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern import columns
from powerkern._status import Status
from powerkern._validate import as_choice, column_label
from powerkern.federated import pool, secure
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, pack, unpack
from powerkern.federated.pool import PooledColumn
from powerkern.federated.requests import write_moments_request
from powerkern.federated.search import METHODS, Evaluation, Found, Search, search
from powerkern.fitting import PowerFit, _warn_unfitted
from powerkern.kernels import likelihood as lk
from powerkern.kernels import mle, shares

FloatArray = NDArray[np.float64]

PROTOCOLS = ("rounds",)

_NOTHING = np.empty(0)


class _Request(NamedTuple):
    """What is asked of every client, and the shape of its answer (None: one row a column, not known before)."""

    kind: Kind
    body: FloatArray
    shape: tuple[int, ...] | None


#: Asks, is sent the bodies of all answers in the order of the clients' names, returns the rows of the fit.
_Talk = Generator[_Request, list[NDArray[Any]], FloatArray]


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
    protocol : {"rounds"}, default "rounds"
        "rounds": ranges, then moments at exponents of the server's choice until lambda is found.
    search : {"newton", "brent"}, default "newton"
        How lambda is looked for: on the derivative of the likelihood, or first by Brent's method on its values, as
        published, which takes more rounds. Both end on the derivative, for values alone give lambda to 1e-8.
    grid : int, default 0
        Ask for so many exponents at once first. Saves rounds and costs bytes.
    standardize : bool, default True
        As in `powerkern.fit`.
    column_names : sequence of str, optional
        Names that the clients' columns must have; default: those of the first client.
    bounds : (low, high), optional
        Arrays of one number a column (numbers, for one column), between which all values are known to lie without
        looking at them: the range is not asked for then. Values should fill a good part of their bounds.
    secure : bool, default False
        Ask for sums under masks. Needs `bounds`: a range is no sum.
    max_rounds : int, default 30
        Most rounds in all. A column that is not done by then has the status NOT_CERTIFIED.

    Attributes
    ----------
    round : int
        The number of the open round, from 1.
    bytes_sent, bytes_received : int
        Bytes of all requests, to all clients, and of all accepted answers.

    See Also
    --------
    Client : has an example of the whole conversation.
    """

    def __init__(
        self,
        clients: Sequence[str],
        *,
        family: str = "yeo-johnson",
        protocol: str = "rounds",
        search: str = "newton",
        grid: int = 0,
        standardize: bool = True,
        column_names: Sequence[str] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        secure: bool = False,
        max_rounds: int = 30,
    ) -> None:
        self._names = _checked_names(clients)
        self._family = as_choice("family", family, columns.FAMILIES)
        self._protocol = as_choice("protocol", protocol, PROTOCOLS)
        self._search, self._grid = as_choice("search", search, METHODS), grid
        self._standardize, self._secure, self._max_rounds = standardize, secure, max_rounds
        if secure and bounds is None:
            raise ValueError("secure=True needs bounds=(low, high): a range is not a sum, and cannot be masked")
        self._bounds = None if bounds is None else _checked_bounds(bounds, self._family)
        self._columns: list[str] | None = None if column_names is None else list(column_names)
        self._n_columns: int | None = None if self._columns is None else len(self._columns)
        if self._bounds is not None:
            if self._n_columns not in (None, self._bounds.shape[1]):
                raise ValueError(f"bounds are of {self._bounds.shape[1]} columns, column_names are {self._n_columns}")
            self._n_columns = self._bounds.shape[1]
        self._session = _new_session()
        self._answers: dict[str, Message] = {}
        self._sizes: dict[str, int] = {}
        self._fit: PowerFit | None = None
        self.round = 0
        self.bytes_sent = self.bytes_received = 0
        self._talk = self._conversation()
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
        return [] if self.done else [name for name in self._names if name not in self._answers]

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
        if sender in self._answers:
            raise _error(sender, f"it has answered round {self.round} already; the second answer is refused")
        self._check_description(answer)
        self._check_body(answer)
        self._answers[sender] = answer
        self._sizes[sender] = len(message)

    def close_round(self) -> None:
        """Merge the answers, and open the next round or finish the fit.

        Raises
        ------
        ProtocolError
            Clients have not answered. The fit cannot go on without them, for the answers of earlier rounds (and masks)
            are theirs too: ask them again, or begin anew with a `Server` for the others.
        """
        if self.missing:
            who = ", ".join(map(repr, self.missing))
            raise ProtocolError(
                f"round {self.round} cannot be closed: no answer from client {who}; ask again, or start anew without"
            )
        first = self._answers[self._names[0]]
        if self._n_columns is None:
            self._n_columns = first.details["n_columns"]
        if self._columns is None:
            self._columns = first.details.get("column_names")
        self.bytes_received += sum(self._sizes.values())
        bodies = [self._answers[name].body for name in sorted(self._names)]
        try:
            request = self._talk.send(bodies)
        except StopIteration as end:
            self._finish(end.value)
        else:
            self._open(request)

    def _open(self, request: _Request) -> None:
        self._asked = request
        self._answers, self._sizes = {}, {}
        self.round += 1
        details = {"family": self._family, "clients": self._names, "secure": self._secure}
        self._request_bytes = self._message(request.kind, details, request.body)
        self.bytes_sent += len(self._names) * len(self._request_bytes)

    def _message(self, kind: Kind, details: dict[str, Any], body: NDArray[Any]) -> bytes:
        return pack(Message(kind, self._session, self.round, SERVER, details, body))

    def _finish(self, results: FloatArray) -> None:
        self._answers = {}
        self._fit = PowerFit(self._family, results, standardize=self._standardize, column_names=self._columns)
        _warn_unfitted(results[:, mle.STATUS], self._columns)

    # --- what is refused --------------------------------------------------------------------------------

    def _check_description(self, answer: Message) -> None:
        """Whether a client has the columns that the others have."""
        if self.round > 1:
            return
        n, names = answer.details.get("n_columns"), answer.details.get("column_names")
        if type(n) is not int or n < 1 or not _are_names(names, n):
            raise _error(answer.sender, "the message is malformed: it does not say which columns it is about")
        others = next(iter(self._answers.values()), None)
        known = others.details["n_columns"] if self._n_columns is None and others else self._n_columns
        if known is not None and n != known:
            raise _error(answer.sender, f"it has {n} columns, the fit has {known}")
        wanted = others.details["column_names"] if self._columns is None and others else self._columns
        if wanted is not None and names is not None and list(names) != list(wanted):
            j = next(j for j in range(n) if names[j] != wanted[j])
            raise _error(answer.sender, f"{column_label(j, names)} is {wanted[j]!r} in the fit; reorder or rename it")

    def _check_body(self, answer: Message) -> None:
        body, shape = answer.body, self._asked.shape
        if self._secure != (body.dtype.kind == "u"):
            raise _error(answer.sender, f"its sums are {'not ' if self._secure else ''}masked")
        if self._asked.kind == Kind.RANGE:
            shape = (answer.details["n_columns"], shares.RANGE_STATUS)
        if shape is None or body.shape != shape:
            raise _error(answer.sender, f"the message has numbers of shape {body.shape} instead of {shape}")
        if self._secure:
            return
        wrong = ~np.isfinite(body).reshape(body.shape[0], -1).all(axis=1)
        if not wrong.any():
            wrong = (_senseless_range if self._asked.kind == Kind.RANGE else _senseless_moments)(body)
        if wrong.any():
            label = column_label(self._column_at(int(np.argmax(wrong))), self._columns)
            raise _error(answer.sender, f"{label} has values that are not finite or cannot be")

    def _column_at(self, k: int) -> int:
        """The column that row k of the open round's answers is about."""
        return int(self._asked.body[k, 0]) if self._asked.kind == Kind.MOMENTS else k

    # --- the protocol -----------------------------------------------------------------------------------

    def _conversation(self) -> _Talk:
        """All rounds: ranges, if there are no bounds, and what the protocol asks then."""
        pooled, n_obs = yield from self._pooled_columns()
        results = np.empty((len(pooled), mle.N_RESULTS))
        open_columns = []
        for j, column in enumerate(pooled):
            if column.status == Status.OK:
                open_columns.append(j)
            else:
                results[j] = pool.identity_row(column, n_obs[j], column.status)
        yield from self._search_all(pooled, open_columns, results)
        return results

    def _pooled_columns(self) -> Generator[_Request, list[NDArray[Any]], tuple[list[PooledColumn], FloatArray]]:
        code = columns.FAMILIES[self._family]
        if self._bounds is not None:
            pooled = [pool.column_of_bounds(low, high, code) for low, high in self._bounds.T.tolist()]
            return pooled, np.zeros(len(pooled))
        ranges = np.stack((yield _Request(Kind.RANGE, _NOTHING, None)))
        ranges = np.concatenate([ranges, np.zeros((*ranges.shape[:2], 1))], axis=2)
        pooled = [pool.column_of_ranges(ranges[:, j], code) for j in range(ranges.shape[1])]
        return pooled, ranges[:, :, shares.TOTAL].sum(axis=0)

    def _search_all(
        self, pooled: list[PooledColumn], indices: list[int], results: FloatArray
    ) -> Generator[_Request, list[NDArray[Any]], None]:
        """Look for lambda of several columns in step; what is found goes to `results`."""
        rounds = self._max_rounds - self.round
        searches: dict[int, Search] = {}
        points: dict[int, list[float]] = {}
        for j in indices:
            searches[j] = search(pooled[j].start, self._search, self._grid, rounds)
            points[j] = next(searches[j])
        while points:
            asked = list(points)
            moments = yield from self._moments([(j, pooled[j]) for j in asked], [points[j] for j in asked])
            for j, of_column in zip(asked, moments, strict=True):
                if of_column[0, lk.WEIGHT] == 0.0 or pool.is_constant(pooled[j], of_column[0]):
                    status = Status.CONSTANT if of_column[0, lk.WEIGHT] > 0.0 else Status.EMPTY
                    results[j] = pool.identity_row(pooled[j], of_column[0, lk.WEIGHT], status)
                    del points[j]
                    continue
                found = [
                    Evaluation(mu, *pool.score_at(pooled[j], mu, m)) for mu, m in zip(points[j], of_column, strict=True)
                ]
                try:
                    points[j] = searches[j].send(found)
                except StopIteration as end:
                    results[j] = _row(pooled[j], end.value, of_column[0])
                    del points[j]

    def _moments(
        self, asked: list[tuple[int, PooledColumn]], at: list[list[float]]
    ) -> Generator[_Request, list[NDArray[Any]], FloatArray]:
        """Merged moments of some columns at exponents of each: (columns, exponents, N_SHARE)."""
        shape = (len(asked), len(at[0]), shares.N_SHARE)
        wire = (math.prod(shape), secure.DIGITS) if self._secure else shape
        answers = yield _Request(Kind.MOMENTS, write_moments_request(asked, at), wire)
        if not self._secure:
            return np.asarray(pool.tree(pool.merge_shares, answers))
        return secure.moments_of_sums(self._unmasked(answers), shape)

    def _unmasked(self, answers: list[NDArray[Any]]) -> list[int]:
        try:
            return secure.decode(secure.add(answers))
        except OverflowError:
            raise ProtocolError(
                f"the masks of round {self.round} do not cancel: a pair of clients has two different secrets, or "
                "clients answered different requests; no sum can be told"
            ) from None


def _row(column: PooledColumn, found: Found, moments: FloatArray) -> FloatArray:
    status = Status.OK if found.certified else Status.NOT_CERTIFIED
    return pool.results_row(column, found.best.x, found.best.at, moments, found.n_eval, status)


def _error(client: str, text: str) -> ProtocolError:
    return ProtocolError(f"client {client!r}: {text}")


def _new_session() -> str:
    return secrets.token_hex(16)


# --- checks -------------------------------------------------------------------------------------------


def _checked_names(clients: Sequence[str]) -> list[str]:
    names = list(clients)
    if isinstance(clients, str) or not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError("clients is a sequence of names, one a client")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"clients has {twice!r} more than once; give every client a name of its own")
    return names


def _checked_bounds(bounds: tuple[ArrayLike, ArrayLike], family: str) -> FloatArray:
    """Bounds as two rows."""
    try:
        low, high = (np.atleast_1d(np.asarray(end, dtype=np.float64)) for end in bounds)
        both = np.array(np.broadcast_arrays(low, high))
    except (TypeError, ValueError):
        raise ValueError("bounds must be (low, high): numbers, or one a column") from None
    if both.ndim != 2 or not np.isfinite(both).all() or not (both[0] < both[1]).all():
        raise ValueError("bounds must be finite, with low < high in every column")
    if family == "box-cox" and not (both[0] > 0.0).all():
        raise ValueError("bounds of family 'box-cox' must be positive")
    return both


def _are_names(names: object, n: int) -> bool:
    return names is None or (isinstance(names, list) and len(names) == n and all(isinstance(v, str) for v in names))


def _senseless_range(body: FloatArray) -> NDArray[np.bool_]:
    """Rows that are no range of any data."""
    count, total, low, high, negative, middle = body.T
    whole = (count == np.floor(count)) & (negative == np.floor(negative))
    ordered = (low <= middle) & (middle <= high) & (negative >= 0.0) & (negative <= count)
    return np.asarray(~(whole & ordered & ((total > 0.0) == (count > 0.0))), dtype=np.bool_)


def _senseless_moments(body: FloatArray) -> NDArray[np.bool_]:
    """Rows that are no moments of any data."""
    never_negative = body[..., [lk.WEIGHT, lk.YY, lk.Y1Y1]]
    return np.asarray((never_negative < 0.0).reshape(body.shape[0], -1).any(axis=1))
