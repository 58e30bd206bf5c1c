"""Federated fits over Flower: the messages travel as its queries.

Flower starts a process for every message, so a round costs seconds whatever is in it, and clients remember nothing from
one round to the next. Needs flwr 1.41 or later: ``pip install 'powerkern[flower]'``.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from powerkern.federated.client import Client
from powerkern.federated.messages import ProtocolError
from powerkern.federated.server import Server
from powerkern.fitting import PowerFit

if TYPE_CHECKING:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

_RECORD, _BYTES = "powerkern", "message"
_POLL = 1.0


def client_name(context: Context) -> str:
    """What `fit` calls the site that a client app runs at: the number that Flower gave to its node.

    Parameters
    ----------
    context : flwr.app.Context
        What Flower hands to a client app.
    """
    return str(context.node_id)


def client_app(make_client: Callable[[Context], Client]) -> ClientApp:
    """Client app that answers for one site.

    Parameters
    ----------
    make_client : callable
        Given Flower's context, the site's `Client`, named ``client_name(context)``. It is called for every
        message: a good place to read the data, with what ``context.node_config`` says.

    Returns
    -------
    flwr.clientapp.ClientApp
    """
    app = _flwr("clientapp").ClientApp()

    @app.query()  # type: ignore[untyped-decorator]
    def _answer(message: Message, context: Context) -> Message:
        return _message(make_client(context).answer(_bytes_in(message)), reply_to=message)

    return app


def fit(
    grid: Grid,
    *,
    n_clients: int,
    family: str = "yeo-johnson",
    wait: float = 300.0,
    timeout: float = 600.0,
    **options: Any,
) -> PowerFit:
    """Fit to the rows of all nodes that are connected to a Flower grid, from within a server app.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        What Flower hands to a server app.
    n_clients : int
        Number of nodes to wait for.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    wait : float, default 300
        Seconds to wait for so many nodes.
    timeout : float, default 600
        Seconds to wait for the answers of a round.
    **options
        Of `powerkern.federated.Server`.

    Returns
    -------
    PowerFit

    Raises
    ------
    ProtocolError
        Too few or too many nodes are there; a client failed, did not answer or was refused.
    """
    nodes = {str(node): node for node in _nodes(grid, n_clients, wait)}
    server = Server(sorted(nodes), family=family, **options)
    while not server.done:
        request = server.request
        asked = [_message(request, dst_node_id=node, message_type="query") for node in nodes.values()]
        for reply in grid.send_and_receive(asked, timeout=timeout):
            name = str(reply.metadata.src_node_id)
            if reply.has_error():
                raise ProtocolError(f"client {name!r} failed: {reply.error.reason or 'see the log of its node'}")
            server.receive(_bytes_in(reply), sender=name)
        server.close_round()
    return server.fit


def _nodes(grid: Grid, n_clients: int, wait: float) -> list[int]:
    """Numbers of the connected nodes, once there are enough."""
    end = time.monotonic() + wait
    while len(nodes := list(grid.get_node_ids())) < n_clients and time.monotonic() < end:
        time.sleep(_POLL)
    if len(nodes) != n_clients:
        raise ProtocolError(f"{len(nodes)} nodes are connected instead of {n_clients}")
    return nodes


def _message(text: bytes, **fields: Any) -> Message:
    app = _flwr("app")
    return app.Message(content=app.RecordDict({_RECORD: app.ConfigRecord({_BYTES: text})}), **fields)


def _bytes_in(message: Message) -> bytes:
    """The bytes that a message of ours carries; none, if it is not ours."""
    try:
        return bytes(message.content[_RECORD][_BYTES])
    except (KeyError, TypeError, ValueError):
        return b""


def _flwr(module: str) -> Any:
    try:
        return importlib.import_module(f"flwr.{module}")
    except ImportError:
        raise ImportError("powerkern.federated.flower needs flwr: pip install 'powerkern[flower]'") from None
