"""A site of a federated fit: answers the server's requests from its own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern import columns
from powerkern._validate import as_rows, column_label
from powerkern.federated import secure
from powerkern.federated.messages import SERVER, Kind, Message, ProtocolError, as_body, digest_of, pack, unpack
from powerkern.federated.requests import read_moments_request
from powerkern.fitting import PowerFit, _weights
from powerkern.kernels import partial_moments
from powerkern.sketch import Grid, Range, Sketch, range_of, sketch

FloatArray = NDArray[np.float64]


class Client:
    """One site's rows, and the answers that they give to a `Server`'s requests.

    It knows nothing of how messages travel: `answer` takes bytes and gives bytes.

    Parameters
    ----------
    data : (n, p) or (n,) array-like
        The site's rows, as for `powerkern.fit`: NaN is missing. There may be none at all.
    name : str
        What the server and all messages call the site.
    sample_weight : (n,) array-like, optional
        Weights of the rows.
    column_names : sequence of str, optional
        Names of the columns; default: those of a data frame. All sites must have the same.
    min_size : int, default 1
        Answer only if every column has no value at all, or at least so many. What is sent of a single value is that
        value.
    secrets : mapping of str to bytes, optional
        A seed of at least 16 secret random bytes for each other site, shared with that site alone
        (`pairwise_secrets` makes some). A client that has secrets sends sums under masks and nothing else.
    min_clients : int, default 3
        A client that has secrets answers only if so many sites take part: with two, each sees the other's sums as
        the difference to its own.
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
    >>> from powerkern.federated import Client, Server
    >>> rows = np.random.default_rng(0).lognormal(size=(300, 2))
    >>> clients = [Client(part, name=name) for name, part in zip(["north", "south"], [rows[:100], rows[100:]])]
    >>> server = Server(["north", "south"], family="box-cox", protocol="rounds")
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
        sample_weight: ArrayLike | None = None,
        column_names: Sequence[str] | None = None,
        min_size: int = 1,
        secrets: Mapping[str, bytes] | None = None,
        min_clients: int = 3,
        n_threads: int | None = None,
    ) -> None:
        self.name = _checked_name(name)
        self._matrix = as_rows(data, column_names)
        if self._matrix.values.shape[0] == 0:  # a missing row says the same
            self._matrix = self._matrix._replace(values=np.full((1, self._matrix.values.shape[1]), np.nan))
            sample_weight = None
        self._sample_weight = sample_weight
        self._weight = _weights(sample_weight, self._matrix.values.shape[0])
        self._min_size, self._min_clients = _count("min_size", min_size), _count("min_clients", min_clients)
        self._secrets = _checked_secrets(secrets, self.name)
        self._n_threads = columns.thread_count(n_threads)
        self._ranges: dict[str, Range] = {}
        self._answers: dict[tuple[str, int], tuple[bytes, bytes]] = {}

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
            two answers under one mask would give away their difference.

        Returns
        -------
        bytes
            For `Server.receive`.

        Raises
        ------
        ProtocolError
            The request is damaged, of another version, not for this client, or asks for more than the client gives; or
            the data are outside the domain of the family (naming column and row).
        """
        message = unpack(request, SERVER)
        key, digest = (message.session, message.round), digest_of(request)
        if key in self._answers:
            answered, answer = self._answers[key]
            if answered != digest:
                raise self._error(f"another request was answered in round {message.round} already")
            return answer
        body = self._body(message, digest)
        details = self._description() if message.round == 1 else {}
        answer = pack(Message(message.kind, message.session, message.round, self.name, details, body))
        self._answers = {k: v for k, v in self._answers.items() if k[0] == message.session}
        self._answers[key] = digest, answer
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
        except ValueError as error:
            raise self._error(f"the announcement is {error}") from None
        if fit.n_features != self.n_columns:
            raise self._error(f"the fit has {fit.n_features} columns, the client has {self.n_columns}")
        return fit

    # --- answers ----------------------------------------------------------------------------------------

    def _body(self, request: Message, digest: bytes) -> NDArray[Any]:
        family = str(request.details.get("family"))
        if family not in columns.FAMILIES:
            raise self._error(f"the request is malformed: there is no family {family!r}")
        peers = self._peers(request)
        found = self._checked_range(family)
        if request.kind == Kind.RANGE:
            if self._secrets:
                raise self._error("a range is no sum and cannot be masked; give the server public bounds instead")
            return as_body(found.to_bytes())
        if request.kind == Kind.MOMENTS:
            moments = self._moments(request, family, found)
            return self._masked_moments(moments, peers, digest) if self._secrets else moments
        if request.kind == Kind.SKETCH:
            own = self._sketch(request, found)
            if self._secrets:
                return secure.masked(secure.encode_words(own.sums), self.name, peers, digest)
            return as_body(own.to_bytes())
        raise self._error(f"a message of kind {request.kind.name} is no request")

    def _sketch(self, request: Message, found: Range) -> Sketch:
        largest = request.details.get("max_weight")
        if isinstance(largest, float) and (found.n_obs > largest).any():
            raise self._error(
                f"a column has more values, or weight, than {largest:g}; begin anew with a larger max_weight"
            )
        try:
            grid = Grid.from_bytes(request.body.tobytes())
        except ValueError as error:
            raise self._error(f"the request is malformed: {error}") from None
        if grid.n_features == self.n_columns:
            self._check_bounds(np.arange(self.n_columns), grid.x_min, grid.x_max, found)
        try:
            return sketch(self._matrix.values, grid, sample_weight=self._sample_weight, n_threads=self._n_threads)
        except ValueError as error:
            raise self._error(str(error)) from None

    def _moments(self, request: Message, family: str, found: Range) -> FloatArray:
        try:
            asked = read_moments_request(request.body, self.n_columns)
        except ValueError as error:
            raise self._error(f"the request is malformed: {error}") from None
        self._check_bounds(asked.which, asked.low, asked.high, found)
        frames, at = (
            np.zeros((self.n_columns, partial_moments.N_FRAME)),
            np.full((self.n_columns, asked.at.shape[1]), np.nan),
        )
        frames[asked.which], at[asked.which] = asked.frames, asked.at
        values, code = self._matrix.values, columns.FAMILIES[family]
        return columns.share_matrix(values, code, frames, at, self._weight, self._n_threads)[asked.which]

    def _masked_moments(self, moments: FloatArray, peers: dict[str, bytes], digest: bytes) -> NDArray[Any]:
        try:
            digits = secure.encode(secure.sums_of_moments(moments))
        except OverflowError:
            raise self._error(
                "sums are too large to be masked; divide the weights by their mean over all sites"
            ) from None
        return secure.masked(digits, self.name, peers, digest)

    # --- what is refused --------------------------------------------------------------------------------

    def _error(self, text: str) -> ProtocolError:
        return ProtocolError(f"client {self.name!r}: {text}")

    def _description(self) -> dict[str, Any]:
        return {"n_columns": self.n_columns, "column_names": self._matrix.names}

    def _peers(self, request: Message) -> dict[str, bytes]:
        """Seeds shared with the other clients that take part."""
        names = request.details.get("clients")
        if (
            not isinstance(names, list)
            or not all(isinstance(name, str) for name in names)
            or self.name not in names
            or len(set(names)) < len(names)
        ):
            raise self._error(f"it is not among the clients of this fit: {names}")
        if bool(request.details.get("secure")) != bool(self._secrets):
            have = "masked sums only" if self._secrets else "no secrets to mask sums with"
            raise self._error(f"it has {have}, and the server asks for the {'opposite' if self._secrets else 'former'}")
        if not self._secrets:
            return {}
        if len(names) < self._min_clients:
            raise self._error(
                f"{len(names)} clients take part; its sums need at least {self._min_clients} to hide among"
            )
        strangers = [name for name in names if name != self.name and name not in self._secrets]
        if strangers:
            raise self._error(f"it shares no secret with {', '.join(map(repr, strangers))}")
        return {name: self._secrets[name] for name in names if name != self.name}

    def _checked_range(self, family: str) -> Range:
        """The range of the columns, once it is known that all may be told of."""
        if family not in self._ranges:
            try:
                found = range_of(
                    self._matrix.values,
                    family,
                    sample_weight=self._sample_weight,
                    column_names=self._matrix.names,
                    n_threads=self._n_threads,
                )
            except ValueError as error:
                raise self._error(str(error)) from None
            few = np.flatnonzero((found.count > 0) & (found.count < self._min_size))
            if few.size:
                label = column_label(int(few[0]), self._matrix.names)
                raise self._error(f"{label} has fewer than {self._min_size} values; it is not told of so few")
            self._ranges[family] = found
        return self._ranges[family]

    def _check_bounds(self, which: NDArray[np.intp], low: FloatArray, high: FloatArray, found: Range) -> None:
        outside = (found.count[which] > 0) & ((found.x_min[which] < low) | (found.x_max[which] > high))
        if outside.any():
            k = int(np.argmax(outside))
            label = column_label(int(which[k]), self._matrix.names)
            raise self._error(f"{label} has values outside {low[k]:g} to {high[k]:g}, the bounds of this fit")


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"name is what others call the client, a string, got {name!r}")
    return name


def _count(what: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{what} is a whole number of at least 1, got {value!r}")
    return int(value)


def _checked_secrets(given: Mapping[str, bytes] | None, name: str) -> dict[str, bytes]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"client {name!r}: secrets must be a dict, name of another client to bytes")
    for other, seed in (given or {}).items():
        if not isinstance(seed, bytes) or len(seed) < secure.SEED_BYTES:
            raise ValueError(
                f"client {name!r}: the secret shared with {other!r} must be at least {secure.SEED_BYTES} bytes"
            )
    return {} if given is None else dict(given)
