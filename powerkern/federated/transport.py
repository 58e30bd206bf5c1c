"""Run the server and the clients in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._results.power_fit import PowerFit
from powerkern.federated.client import Client
from powerkern.federated.integers import Integers
from powerkern.federated.messages import ProtocolError
from powerkern.federated.server import Server

SecureSum = Callable[[list[Integers]], NDArray[Any]]


def fit_federated(
    clients: Iterable[Client | Any],
    family: str = "yeo-johnson",
    *,
    secure_sum: SecureSum | None = None,
    **options: Any,
) -> PowerFit:
    """Run a federated fit of several clients in one process, without pooling their rows.

    The lambdas agree with those of `powerkern.fit` on the pooled rows to about 1e-12. This function is for trials,
    tests and simulations. Between real sites, use `Server` and `Client` with any transport of messages, or
    `powerkern.federated.flower`.

    Parameters
    ----------
    clients : iterable of Client or array-like
        The clients. Arrays become clients named "0", "1" and so on.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    secure_sum : callable, optional
        Function that takes the list of the int64 vectors of all sites and returns their exact total. It is used with
        `quantum`. By default the vectors are added with NumPy.
    **options
        Options of `Server`.

    Returns
    -------
    PowerFit
        The fit. `n_iter` counts the exponents at which each column was evaluated.

    Raises
    ------
    ProtocolError
        If an answer is refused.
    ValueError
        If the data of a client are outside the domain of the family, or an option is invalid.

    Warns
    -----
    UserWarning
        A single warning lists the columns without a reliable lambda.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.federated import fit_federated
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> sites = [rows[:20], rows[20:150], rows[150:]]
    >>> bool(np.abs(fit_federated(sites).lmbda - pk.fit(rows).lmbda).max() < 1e-12)
    True

    With integers for a secure sum, which is replaced by a plain sum here:

    >>> fit = fit_federated(sites, quantum=2.0**-80, secure_sum=lambda vectors: np.sum(vectors, axis=0))
    >>> bool((np.abs(fit.lmbda - pk.fit(rows).lmbda) <= fit.lmbda_error).all())
    True
    """
    if hasattr(clients, "shape"):
        raise TypeError("clients is one table; pass a list with the rows of each site, or a Client for each")
    every = [one if isinstance(one, Client) else Client(one, name=str(i)) for i, one in enumerate(clients)]
    if options.get("data_bounds") is not None and every:
        low, high = options["data_bounds"]
        options["data_bounds"] = tuple(np.broadcast_to(end, (every[0].n_columns,)) for end in (low, high))
        if options.get("column_names") is None:  # without a round for ranges, no answer contains names
            options["column_names"] = next((client.column_names for client in every if client.column_names), None)
    server = Server([client.name for client in every], family=family, **options)
    run(server, every, secure_sum)
    return server.fit


def run(server: Server, clients: list[Client], secure_sum: SecureSum | None = None) -> None:
    """Pass messages between a server and its clients until the fit is done.

    In one process, values need not be hidden, so errors include the details that clients otherwise only log.
    `secure_sum` adds the vectors of the clients in rounds that need a total; the default is a plain sum.
    """
    add = secure_sum or (lambda vectors: np.sum(vectors, axis=0))
    while not server.done:
        request = server.request
        try:
            if server.wants_total:
                server.receive_total(add([client.summands(request) for client in clients]))
            else:
                for client in clients:
                    server.receive(client.answer(request), sender=client.name)
        except ProtocolError as error:
            raise ProtocolError(error.detail) from None
        server.close_round()
