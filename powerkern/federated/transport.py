"""Server and clients in one process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from powerkern._fit.fitting import PowerFit
from powerkern.federated.client import Client
from powerkern.federated.messages import ProtocolError
from powerkern.federated.policy import Policy
from powerkern.federated.server import Server


def run(server: Server, clients: Iterable[Client]) -> PowerFit:
    """Carry messages between a server and its clients until the fit is done.

    In one process there is nobody to keep values from: errors have the details that clients keep to themselves.
    """
    every = list(clients)
    while not server.done:
        request = server.request
        for client in every:
            server.receive(_answer(client, request), sender=client.name)
        server.close_round()
    return server.fit


def _answer(client: Client, request: bytes) -> bytes:
    try:
        return client.answer(request)
    except ProtocolError as error:
        told = error
    raise ProtocolError(told.detail)


def fit_federated(clients: Iterable[Client | Any], family: str = "yeo-johnson", **options: Any) -> PowerFit:
    """Fit to the rows of several clients without pooling them, in one process.

    The lambdas are those of `powerkern.fit` on all rows together, to about 1e-12. For trials, tests and
    simulations; where clients are apart, the same messages travel by other means (`Server`,
    `powerkern.federated.flower`).

    Parameters
    ----------
    clients : iterable of Client or array-like
        Arrays become clients named "0", "1" and so on, with ``Policy.open()``: they are all in this process.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    **options
        Of `Server`: protocol, search, grid, standardize, lmbda, shift, ymax, lmbda_bounds, column_names, bounds,
        secure, max_weight, max_rounds.

    Returns
    -------
    PowerFit
        Its `n_iter` counts the exponents at which each column's moments were asked for.

    Raises
    ------
    ProtocolError
        A client's answer was refused.
    ValueError
        A client's data are outside the domain of the family, or an option makes no sense.

    Warns
    -----
    UserWarning
        Once, listing columns that have no maximum.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.federated import fit_federated
    >>> rows = np.random.default_rng(0).normal(size=(300, 2))
    >>> fit = fit_federated([rows[:20], rows[20:150], rows[150:]])
    >>> bool(np.abs(fit.lmbda - pk.fit(rows).lmbda).max() < 1e-12)
    True
    """
    if hasattr(clients, "shape"):
        raise TypeError("clients is one table; pass a list with the rows of each site, or a Client for each")
    every = [
        one if isinstance(one, Client) else Client(one, name=str(i), policy=Policy.open())
        for i, one in enumerate(clients)
    ]
    if options.get("bounds") is not None and every:
        options["bounds"] = tuple(np.broadcast_to(end, (every[0].n_columns,)) for end in options["bounds"])
    return run(Server([client.name for client in every], family=family, **options), every)
