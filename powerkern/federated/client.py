"""The client of a federated fit: it answers requests of the server from the rows of one site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.by_column import partial_moments_matrix
from powerkern._engine.gather import shift_and_scale
from powerkern._engine.threads import thread_count
from powerkern._estimators.shift import given_shift
from powerkern._input.alignment import are_default, labels_from_record, matching_order, may_go_by_position
from powerkern._input.arrays import as_flag, column_label
from powerkern._input.choices import Infinite
from powerkern._input.infinite import without_infinite
from powerkern._input.messages import shown
from powerkern._input.reading import read_chunk
from powerkern._typing import FloatArray
from powerkern.federated.integers import Integers, check_quantum, encode_moments
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, pack, unpack
from powerkern.federated.pool import MomentsRequest, read_moments_request
from powerkern.kernels.likelihood import partial_moments
from powerkern.kernels.transforms.family import FAMILIES
from powerkern.sketch import Range, range_of


class Client:
    """Client for the rows of one site, which answers the requests of a `Server`.

    A client does not depend on the transport of messages: `answer` takes bytes and returns bytes. It keeps no state
    between requests, so a new client may answer each of them.

    Parameters
    ----------
    data : (n, p) or (n,) array-like
        The rows of the site, as for `powerkern.fit`; NaN is missing. A site may have no rows.
    name : str
        The name of the site in all messages.
    sample_weight : (n,) array-like, or str, optional
        Weights of the rows, or the name of the column of a data frame that holds them.
    column_names : sequence of str, optional
        Names of the columns of `data`, in their order; default: the names in a data frame. All sites must use the same
        names, in any order.
    sums_only : bool, default False
        Refuse unencrypted answers: neither ranges nor moments leave the site, and only `summands` may be called. The
        server then needs `data_bounds` and a `quantum`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Attributes
    ----------
    name : str
        The name of the site.
    n_columns : int
        Number of columns.
    column_names : list or None
        Names of the columns, if they have any.

    See Also
    --------
    fit_federated : run server and clients in one process.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.federated import Client, Server
    >>> rows = np.random.default_rng(0).lognormal(size=(300, 2))
    >>> clients = [Client(rows[:100], name="north"), Client(rows[100:], name="south")]
    >>> server = Server(["north", "south"], family="box-cox")
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
        sums_only: bool = False,
        n_threads: int | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"name must be a string that is not empty, got {shown(name)}")
        self.name = name
        self._matrix = read_chunk(data, sample_weight, column_names, what="X")
        (n, p), weight = self._matrix.values.shape, self._matrix.weight
        if n == 0 or (weight is not None and not weight.any()):  # one missing row is equivalent
            self._matrix = self._matrix._replace(values=np.full((1, p), np.nan), weight=None)
        self._sums_only = as_flag("sums_only", sums_only)
        self._n_threads = thread_count(n_threads)
        self._ranges: dict[tuple[str, str, bytes], Range] = {}

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self._matrix.values.shape[1])

    @property
    def column_names(self) -> list[Any] | None:
        """Names of the columns, if they have any."""
        return self._matrix.names

    def answer(self, request: bytes) -> bytes:
        """Answer a request with ranges or moments that the server can read.

        Parameters
        ----------
        request : bytes
            The message `Server.request`. The same request always gets the same answer.

        Returns
        -------
        bytes
            The answer, to be passed to `Server.receive`.

        Raises
        ------
        ProtocolError
            If the request is damaged, of another version, not for this client, or for `summands`; if the client has
            `sums_only`; or if values are outside the domain of the family or the bounds of the fit. The text contains
            no values and may be sent to the server. The attribute `detail` names row and value.
        """
        message, shift = self._read_request(request)
        if message.kind == Kind.SUMS:
            raise self._error("the request asks for integers for a secure sum; answer it with summands()")
        if self._sums_only:
            raise self._error(
                "this client sends only integers for a secure sum; give the server data_bounds and a quantum"
            )
        body: NDArray[np.float64] | NDArray[np.uint8]
        if message.kind == Kind.RANGE:
            body = np.frombuffer(self._measure_range(message, shift).to_bytes(), np.uint8)
        else:
            body = self._measure_moments(message, shift)
        return pack(Message(message.kind, message.session, message.round, self.name, {}, body))

    def summands(self, request: bytes) -> Integers:
        """Encode the sums of the site as integers, to be added to the sums of other sites by secure aggregation.

        Parameters
        ----------
        request : bytes
            The message `Server.request` of a round in which `Server.wants_total` is True.

        Returns
        -------
        (k,) ndarray of int64
            Entries within ``+-2**20``. Pass their exact totals over all sites to `Server.receive_total`.

        Raises
        ------
        ProtocolError
            As in `answer`, or if the weights are too large.
        """
        message, shift = self._read_request(request)
        if message.kind != Kind.SUMS:
            raise self._error(f"the request asks for {message.kind.name.lower()} in the clear; answer it with answer()")
        try:
            quantum = check_quantum(message.details.get("quantum"))
        except ValueError as error:
            raise self._error(f"the request is malformed: {error}") from None
        try:
            return encode_moments(self._measure_moments(message, shift), quantum, request)
        except OverflowError:
            text = "the weights are too large for a secure sum; divide them by their mean over all sites"
            raise self._error(text) from None

    # --- requests ---------------------------------------------------------------------------------------

    def _read_request(self, request: bytes) -> tuple[Message, FloatArray]:
        """Read a request; return its message and the shift of each column, (p,).

        Raise a ProtocolError if the request is not for this client.
        """
        message = unpack(request, SERVER)
        family, names = message.details.get("family"), message.details.get("clients")
        if not isinstance(family, str) or family not in FAMILIES:
            raise self._error(f"the request is malformed: unknown family {family!r}")
        if not isinstance(names, list) or self.name not in names:
            raise self._error(f"this client is not one of the clients of the fit: {names}")
        n = message.details.get("n_columns")
        try:
            columns = labels_from_record(message.details.get("column_names"))
        except (ValueError, OverflowError):
            raise self._error("the request is malformed: its column names are not labels") from None
        if n is not None and n != self.n_columns:
            raise self._error(f"the data have {self.n_columns} columns, the fit has {n}; pass the columns of the fit")
        self._order_columns(columns)
        own = self._matrix.names
        if columns is None and own is not None and not are_default(own) and message.kind != Kind.RANGE:
            raise self._error(
                f"the columns have labels, such as {own[0]!r}, and the fit has none; give the server column_names"
            )
        if (
            columns is not None
            and own is not None
            and own != columns
            and not may_go_by_position(own, columns, one_may_differ=False)
        ):
            j = next((j for j in range(self.n_columns) if own[j : j + 1] != columns[j : j + 1]), 0)
            raise self._error(f"{column_label(j, own)} has another name in the fit, {columns[j : j + 1]}; rename it")
        infinite = message.details.get("infinite", "raise")
        if infinite not in get_args(Infinite):
            raise self._error(f"the request is malformed: unknown treatment of infinite values {infinite!r}")
        try:
            return message, given_shift(message.details.get("shift", 0.0), family, self.n_columns)
        except (TypeError, ValueError) as error:
            raise self._error(f"the request is malformed: {error}") from None

    def _order_columns(self, columns: list[Any] | None) -> None:
        """Put the columns of the client in the order `columns` of the fit, if both have the same labels."""
        own, values = self._matrix.names, self._matrix.values
        if own is None or columns is None or len(own) != len(columns):
            return
        if (order := matching_order(own, columns)) is not None:
            self._matrix = self._matrix._replace(values=values[:, order], names=list(columns))
            self._ranges = {}

    # --- answers ----------------------------------------------------------------------------------------

    def _read_values(self, message: Message) -> NDArray[Any]:
        """Return the values of the site; infinite values become NaN if the fit leaves them out."""
        return without_infinite(self._matrix, message.details.get("infinite", "raise"), warns=False).values

    def _measure_range(self, message: Message, shift: FloatArray) -> Range:
        """Return the range of the shifted columns; it is computed once for each kind of request."""
        family, infinite = message.details["family"], message.details.get("infinite", "raise")
        key, weight = (family, infinite, shift.tobytes()), self._matrix.weight
        if key in self._ranges:
            return self._ranges[key]
        try:
            found = range_of(
                self._read_values(message),
                family,
                sample_weight=weight,
                shift=shift,
                column_names=self._matrix.names,
                n_threads=self._n_threads,
            )
        except ValueError as error:
            detail = str(error)
            column = detail.partition(", row")[0] if ", row" in detail else "a column"
            text = f"{column} has values outside the domain of {family}{' with this shift' if shift.any() else ''}"
            raise self._error(f"{text}; the log of the site names one", detail) from None
        return self._ranges.setdefault(key, Range(family, found._table, found.column_names, found._was_vector))

    def _measure_moments(self, message: Message, shift: FloatArray) -> FloatArray:
        """Return the moments of the requested columns at the requested exponents, (k, n_points, N_PARTIAL)."""
        family = message.details["family"]
        try:
            asked = read_moments_request(message.body, self.n_columns, FAMILIES[family])
        except ValueError as error:
            raise self._error(f"the request is malformed: {error}") from None
        self._check_bounds(asked, self._measure_range(message, shift), shift)
        scalings = np.zeros((self.n_columns, partial_moments.N_SCALING))
        at = np.full((self.n_columns, asked.at.shape[1]), np.nan)
        scalings[asked.which], at[asked.which] = asked.scalings, asked.at
        values, code = shift_and_scale(self._read_values(message), shift), FAMILIES[family]
        moments = partial_moments_matrix(values, code, scalings, at, self._matrix.weight, self._n_threads)[asked.which]
        if not np.isfinite(moments).all():
            raise self._error("moments at these exponents are beyond float64")
        return moments

    def _check_bounds(self, asked: MomentsRequest, found: Range, shift: FloatArray) -> None:
        """Raise a ProtocolError unless the range of the data, `found`, lies within the bounds of the request."""
        which = asked.which
        outside = (found.count[which] > 0) & ~((asked.low <= found.x_min[which]) & (found.x_max[which] <= asked.high))
        if outside.any():
            k = int(np.argmax(outside))
            label, moved = column_label(int(which[k]), self._matrix.names), shift[which[k]]
            ends = f"{asked.low[k] - moved:g} to {asked.high[k] - moved:g}"
            raise self._error(
                f"{label} has values outside {ends}, the bounds of this fit; give the server wider data_bounds"
            )

    def _error(self, text: str, detail: str | None = None) -> ProtocolError:
        """Return an error whose text names the client; `detail` may contain values and is only for the site's log."""
        who = f"client {self.name!r}"
        return ProtocolError(f"{who}: {text}", None if detail is None else f"{who}: {detail}")
