"""The server of a federated fit, which sends requests to the clients, and checks and merges their answers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powerkern._estimators.shift import given_shift
from powerkern._estimators.spec import FitSpec
from powerkern._input.alignment import labels_to_record, matching_order, may_go_by_position
from powerkern._input.arrays import as_choice, as_names, as_reals, column_label, column_labels, to_list
from powerkern._input.choices import Infinite
from powerkern._input.messages import warn
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.power_fit import PowerFit, build_power_fit
from powerkern._status import Status
from powerkern._typing import Bounds, FloatArray
from powerkern.federated.integers import check_quantum
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, pack, unpack
from powerkern.federated.protocol import FederatedResults, MergeError, Plan, Request, conversation
from powerkern.federated.search import METHODS
from powerkern.kernels.results import STATUS
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import Range
from powerkern.sketch.grids import check_bounds


class Server:
    """Server that fits power transforms to rows that stay with several clients.

    A server does not depend on the transport of messages. `request` is a message in bytes for every client. `receive`
    takes each answer; in a secure sum, `receive_total` takes the total of all answers instead. `close_round` merges the
    answers once all are present. Nothing is merged before that, and an answer that is rejected changes nothing.

    Parameters
    ----------
    clients : sequence of str
        Names of all clients that take part.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    data_bounds : (low, high), optional
        Bounds that all values satisfy by prior knowledge: two arrays with one number per column, or two numbers for one
        column. The server then does not request the ranges of the columns. The tighter the bounds, the more accurate
        the fit. The fit reports the bounds as `x_min` and `x_max`.
    quantum : float, optional
        Request sums as integers, to be added by a secure sum of your choice. A row of weight 1 adds 1 to the sum of the
        weights, and all sums are rounded to multiples of this power of two; ``2.0**-80`` is fine enough for most
        columns. `PowerFit.lmbda_error` bounds the error of lambda due to this rounding. The status is not OK if the
        bound exceeds 0.01 standard errors. By default, clients send unencrypted moments.
    search : {"newton", "brent"}, default "newton"
        Search for lambda. "newton" uses the derivative of the likelihood. "brent" starts with Brent's method on values
        of the likelihood, as published, which takes more rounds, and then also uses the derivative.
    standardize, lmbda, shift, ymax, bounds
        As in `powerkern.fit`. With `data_bounds`, `ymax` holds for all values within the bounds.
    infinite : {"raise", "missing", "keep"}, default "raise"
        Treatment of infinite values, as in `powerkern.fit`. With "missing" and "keep" every client leaves out infinite
        values without counting them.
    column_names : sequence of str, optional
        Names of the columns. By default, the first client with column names determines them, in the round for ranges.
        With `data_bounds` there is no such round, so `column_names` is needed if the columns of clients have names.

    Attributes
    ----------
    round : int
        Number of the open round, from 1.
    bytes_sent, bytes_received : int
        Number of bytes of all requests to all clients, and of all accepted answers.

    See Also
    --------
    Client : with an example of a complete fit.
    """

    def __init__(
        self,
        clients: Sequence[str],
        *,
        family: str = "yeo-johnson",
        data_bounds: tuple[ArrayLike, ArrayLike] | None = None,
        quantum: float | None = None,
        search: str = "newton",
        standardize: bool = True,
        lmbda: ArrayLike | None = None,
        shift: ArrayLike = 0.0,
        ymax: float | None = None,
        bounds: Bounds | None = None,
        infinite: Infinite = "raise",
        column_names: Sequence[str] | None = None,
    ) -> None:
        self._names = _check_names(clients)
        as_choice("family", family, FAMILIES)
        moved = as_reals("shift", shift)
        spec = FitSpec.checked(
            family=family,
            standardize=standardize,
            lmbda=lmbda,
            shift=moved,
            ymax=ymax,
            bounds=bounds,
            infinite=infinite,
        )
        given_shift(moved, family, max(moved.size, 1))
        limits = None if data_bounds is None else _shifted_bounds(data_bounds, family, moved)
        self._columns, self._n_columns = _resolve_columns(column_names, limits, moved)
        _check_columns(replace(spec, shift=0.0), self._n_columns)
        step, n = 0.0 if quantum is None else check_quantum(quantum), len(self._names)
        as_choice("search", search, METHODS)
        self._plan = Plan(spec, search, limits, step, n)
        self._session = secrets.token_hex(16)
        self._read: dict[str, Any] = {}
        self._request_bytes = b""
        self._fit: PowerFit | None = None
        self._failure = ""
        self.round = 0
        self.bytes_sent = self.bytes_received = 0
        self._talk = conversation(self._plan)
        self._open(next(self._talk))

    # --- rounds -----------------------------------------------------------------------------------------

    @property
    def request(self) -> bytes:
        """The message to send to every client in the open round."""
        if self.done:
            raise ProtocolError("the fit is done; there is no open request")
        return self._request_bytes

    @property
    def wants_total(self) -> bool:
        """True if the open round uses `Client.summands` and `receive_total`, not `Client.answer` and `receive`."""
        return not self.done and self._asked.kind == Kind.SUMS

    @property
    def missing(self) -> list[str]:
        """Names of the clients that have not answered in the open round."""
        return [] if self.done else [name for name in self._names if name not in self._read]

    @property
    def done(self) -> bool:
        """True if the fit is complete."""
        return self._fit is not None

    @property
    def fit(self) -> PowerFit:
        """The fit to the rows of all clients together."""
        if self._fit is None:
            raise ProtocolError(f"there is no fit yet: round {self.round} is open; collect its answers and close it")
        return self._fit

    def receive(self, message: bytes, *, sender: str) -> None:
        """Accept the answer of one client.

        Parameters
        ----------
        message : bytes
            The result of `Client.answer`.
        sender : str
            Name of the client from which the transport received it.

        Raises
        ------
        ProtocolError
            If the message is rejected: it is damaged, of another version, from an unknown client, a duplicate, or late,
            or it has values that are not finite or are impossible. The text names the client. The state of the server
            is unchanged.
        """
        if not isinstance(sender, str) or sender not in self._names:
            raise ProtocolError(
                f"client {sender!r} is not one of the clients of this fit; start a new fit with its name in clients"
            )
        answer = unpack(message, sender)
        if answer.session != self._session:
            raise _error(sender, "the message belongs to another fit")
        if self.done or answer.round < self.round:
            raise _error(sender, f"the message is late: it answers round {answer.round}, which is closed")
        if answer.round > self.round or answer.kind != self._asked.kind or self.wants_total:
            raise _error(sender, f"the message does not answer the question of round {self.round}")
        if sender in self._read:
            raise _error(sender, f"it has answered round {self.round} already; the second answer is refused")
        try:
            read = self._asked.read(answer.body, sender)
            if isinstance(read, Range):
                self._check_columns(self._order_columns(read))
        except ValueError as error:
            raise _error(sender, str(error)) from None
        self._read[sender] = read
        self.bytes_received += len(message)

    def receive_total(self, total: ArrayLike) -> None:
        """Accept the total of the vectors of all clients.

        Parameters
        ----------
        total : (k,) array of integers
            The exact sum of `Client.summands` over all clients.

        Raises
        ------
        ProtocolError
            If the total is rejected: a client is missing or answered another request, the total is not exact, no rows
            can have these sums, or the round does not request a total. The state of the server is unchanged.
        """
        if not self.wants_total:
            raise ProtocolError(f"round {self.round} does not ask for a total")
        if self._read:
            raise ProtocolError(f"round {self.round} has its total already; the second one is refused")
        try:
            read = self._asked.read(total, self._request_bytes)
        except (ValueError, OverflowError) as error:
            raise ProtocolError(f"the total of round {self.round} is refused: {error}") from None
        self._read = dict.fromkeys(self._names, read)
        self.bytes_received += len(self._names) * np.asarray(total).nbytes

    def close_round(self) -> None:
        """Merge the answers, and open the next round or finish the fit.

        Raises
        ------
        ProtocolError
            If clients have not answered. The fit cannot continue without them, because it uses their earlier answers:
            send them the request again, or start a new `Server` without them. Also if the answers contradict each
            other; the fit has then failed.
        """
        if self._failure:
            raise ProtocolError(self._failure)
        if self.missing and self.wants_total:
            raise ProtocolError(
                f"round {self.round} cannot be closed: it has no total; start a new fit without lost sites"
            )
        if self.missing:
            who = ", ".join(map(repr, self.missing))
            raise ProtocolError(
                f"round {self.round} cannot be closed: no answer from client {who}; ask again, or start a new fit "
                "without it"
            )
        answers = [self._read[name] for name in sorted(self._names)]
        if isinstance(answers[0], Range):
            self._n_columns = answers[0].n_features
            self._columns = self._columns or next((one.column_names for one in answers if one.column_names), None)
            answers = [self._order_columns(one) for one in answers]
        try:
            request = self._talk.send(answers[:1] if self.wants_total else answers)
        except StopIteration as end:
            self._finish(end.value)
        except MergeError as error:
            self._failure = f"round {self.round} cannot be merged: {error}; start a new fit"
            raise ProtocolError(self._failure) from None
        else:
            self._open(request)

    def _open(self, request: Request) -> None:
        """Open the next round, in which all clients receive `request`."""
        self._asked = request
        self._read = {}
        self.round += 1
        details: dict[str, Any] = {
            "family": self._plan.spec.family,
            "clients": self._names,
            "n_columns": self._n_columns,
            "column_names": labels_to_record(self._columns),
            "shift": self._plan.spec.shift.tolist(),
        }
        if request.kind == Kind.SUMS:
            details["quantum"] = self._plan.quantum
        if self._plan.spec.infinite != "raise":
            details["infinite"] = self._plan.spec.infinite
        self._request_bytes = pack(Message(request.kind, self._session, self.round, SERVER, details, request.body))
        self.bytes_sent += len(self._names) * len(self._request_bytes)

    def _finish(self, outcome: FederatedResults) -> None:
        """Build the fit from the results of all rounds; warn about columns whose lambda is not precise."""
        results, error = outcome
        self._read = {}
        spec, _ = self._plan.spec.match_columns(len(results))
        columns = ColumnTable(results, spec.family, lmbda_error=error)
        self._fit = build_power_fit(spec, ColumnLabels(self._columns), columns)
        rough = np.flatnonzero(results[:, STATUS] == Status.BRACKETED)
        if rough.size:
            text = f"{column_labels(rough, self._columns)}: lambda is off by up to lmbda_error"
            warn(f"{text}, more than 0.01 standard errors; use a smaller quantum or closer data_bounds")

    @property
    def _labels(self) -> list[Any] | None:
        """The labels of the columns, from the option `column_names` or from the first answer that has labels."""
        return self._columns or next((one.column_names for one in self._read.values() if one.column_names), None)

    def _order_columns(self, found: Range) -> Range:
        """Reorder the columns of a client's range if the fit has the same labels in another order."""
        wanted, names = self._labels, found.column_names
        if wanted is None or names is None or len(wanted) != len(names):
            return found
        order = matching_order(names, wanted)
        return found if order is None else found.part(order)

    def _check_columns(self, found: Range) -> None:
        """Raise a ValueError if number or labels of the columns of a client's range differ from those of the fit."""
        first = next(iter(self._read.values()), found)
        n = self._n_columns or first.n_features
        if found.n_features != n:
            raise ValueError(f"the data have {found.n_features} columns, the fit has {n}; pass the columns of the fit")
        wanted, names = self._labels, found.column_names
        if (
            wanted is not None
            and names not in (None, wanted)
            and not may_go_by_position(names or [], wanted, one_may_differ=False)
        ):
            j = next(j for j in range(n) if names[j] != wanted[j])
            raise ValueError(f"{column_label(j, names)} is {wanted[j]!r} in the fit; rename it")


def _error(client: str, text: str) -> ProtocolError:
    """Return an error whose text begins with the name of the client."""
    return ProtocolError(f"client {client!r}: {text}")


# --- checks of arguments ------------------------------------------------------------------------------


def _check_names(clients: Sequence[str]) -> list[str]:
    """Return the names of the clients as a list; raise an error unless they are distinct, non-empty strings."""
    names = to_list(clients)
    if isinstance(clients, str) or not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError("clients must be a sequence of names, one for each client")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"clients has {twice!r} more than once; give every client a different name")
    return names


def _resolve_columns(
    names: Sequence[str] | None, limits: FloatArray | None, shift: FloatArray
) -> tuple[list[str] | None, int | None]:
    """Return the names and the number of the columns, each None if the options do not determine it.

    Parameters
    ----------
    names : sequence of str or None
        The option `column_names`.
    limits : (2, p) ndarray or None
        The option `data_bounds`.
    shift : (p,) or (1,) ndarray
        The option `shift`.
    """
    named = None if names is None else as_names(names, len(names))
    known = None if named is None else len(named)
    if limits is not None:
        if known not in (None, limits.shape[1]):
            raise ValueError(
                f"data_bounds has {limits.shape[1]} columns, column_names has {known}; give a name and bounds for each"
            )
        known = int(limits.shape[1])
    if known is not None:
        given_shift(shift, "box-cox", known)
    return named, shift.size if known is None and shift.ndim else known


def _check_columns(spec: FitSpec, n_columns: int | None) -> None:
    """Raise an error for options that do not match the number of columns, if this is known before the first round."""
    entries = [spec.lmbda, *(spec.bounds or ())]
    spec.per_column(n_columns or max(np.size(each) for each in [0.0, *entries] if each is not None))


def _shifted_bounds(data_bounds: Any, family: str, shift: FloatArray) -> FloatArray:
    """Check the option `data_bounds`; return the bounds of the columns plus their shift, (2, p)."""
    try:
        low, high = to_list(data_bounds)
    except (TypeError, ValueError):
        raise ValueError("data_bounds must be (low, high): numbers, or one per column") from None
    try:
        if not shift.any():
            return check_bounds(low, high, family)
        ends = check_bounds(low, high, "yeo-johnson")
        low, high = ends + given_shift(shift, "box-cox", ends.shape[1])
        return check_bounds(low, high, "box-cox")
    except ValueError as error:
        raise ValueError(f"data_bounds: {error}") from None
