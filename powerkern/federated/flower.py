"""Federated fits over Flower, which transports the messages and adds integers by the protocol SecAgg+.

Requests for ranges and unencrypted moments travel as queries. Requests for integers travel as training messages, the
only kind that SecAgg+ supports. Flower starts a process for every message, so a round takes seconds whatever its size.
flwr 1.41 or later is needed: ``pip install flwr``.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from powerkern._results.power_fit import PowerFit
from powerkern.federated.client import Client
from powerkern.federated.messages import ProtocolError
from powerkern.federated.server import Server

if TYPE_CHECKING:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

_RECORD, _BYTES = "powerkern", "message"
_POLL = 1.0
#: A request for the name of the client of a node.
_WHO = b""

_log = logging.getLogger(__name__)


def client_app(make_client: Callable[[Context], Client]) -> ClientApp:
    """Make the Flower client app of one site, which answers unencrypted requests and takes part in SecAgg+.

    Parameters
    ----------
    make_client : callable
        Takes the context of Flower and returns the `Client` of the site. It is called for every message, so it can read
        the data, from a location in ``context.node_config``.

    Returns
    -------
    flwr.clientapp.ClientApp
        The app. It logs errors at the site. The server receives the text of a `ProtocolError`, which contains no
        values; for other errors it receives only the type.
    """
    app = _import_flwr("clientapp").ClientApp()

    @app.query()  # type: ignore[untyped-decorator]
    def _answer(message: Message, context: Context) -> Message:
        def ask(client: Client) -> bytes:
            request = _read_bytes(message)
            return client.name.encode() if request == _WHO else client.answer(request)

        return _make_message(_call_client(make_client, context, ask), reply_to=message)

    @app.train(mods=[_import_flwr("client.mod").secaggplus_mod])  # type: ignore[untyped-decorator]
    def _add(message: Message, context: Context) -> Message:
        secagg = importlib.import_module("powerkern.federated.secagg")
        request = secagg.read_request(message)
        vector = _call_client(make_client, context, lambda client: client.summands(request))
        reply: Message = secagg.make_reply(message, vector)
        return reply

    return app


def _call_client(make_client: Callable[[Context], Client], context: Context, ask: Callable[[Client], Any]) -> Any:
    """Make the client of a site and return ``ask(client)``; replace errors by errors that reveal nothing about rows."""
    try:
        return ask(make_client(context))
    except ProtocolError as error:
        _log.warning("%s", error.detail)
        told = str(error)
    except Exception as error:
        _log.exception("no answer")
        told = f"its client failed with {type(error).__name__}; see the log of the site"
    raise ProtocolError(told)


def fit(
    grid: Grid,
    *,
    n_clients: int,
    family: str = "yeo-johnson",
    context: Context | None = None,
    wait: float = 300.0,
    timeout: float = 600.0,
    **options: Any,
) -> PowerFit:
    """Run a federated fit over all nodes connected to a Flower grid, from within a server app.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        The grid that Flower passes to a server app.
    n_clients : int
        Number of nodes to wait for.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    context : flwr.app.Context, optional
        The context that Flower passes to a server app. It is needed with `quantum`; SecAgg+ then adds the integers of
        all nodes in one secure sum.
    wait : float, default 300
        Seconds to wait for `n_clients` nodes.
    timeout : float, default 600
        Seconds to wait for the answers of a round.
    **options
        Options of `powerkern.federated.Server`.

    Returns
    -------
    PowerFit
        The fit to the rows of all nodes together.

    Raises
    ------
    ProtocolError
        If too few or too many nodes are connected, or if a client failed, did not answer, or sent an invalid answer.
    """
    if options.get("quantum") is not None and context is None:
        raise ValueError("quantum= needs context=, the context of the server app, for SecAgg+")
    nodes = _name_nodes(grid, _wait_for_nodes(grid, n_clients, wait), timeout)
    server = Server(sorted(nodes), family=family, **options)
    while not server.done:
        if server.wants_total:
            secagg = importlib.import_module("powerkern.federated.secagg")
            server.receive_total(secagg.secure_total(grid, context, list(nodes.values()), server.request, timeout))
        else:
            _run_round(grid, nodes, server, timeout)
        server.close_round()
    return server.fit


def _run_round(grid: Grid, nodes: dict[str, int], server: Server, timeout: float) -> None:
    """Send the request of the open round to all nodes, and pass their answers to the server.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        The grid.
    nodes : dict of str to int
        Node of each client, by client name.
    server : Server
        The server, whose round is open.
    timeout : float
        Seconds to wait for answers.
    """
    answers, errors = _query_nodes(grid, list(nodes.values()), server.request, timeout)
    failures = [f"client {name!r} failed: {errors[node]}" for name, node in nodes.items() if node in errors]
    if failures:
        raise ProtocolError("; ".join(failures))
    for name, node in nodes.items():
        if node in answers:
            server.receive(answers[node], sender=name)


def _name_nodes(grid: Grid, nodes: list[int], timeout: float) -> dict[str, int]:
    """Query the nodes for the names of their clients; return the node of each client by name."""
    answers, errors = _query_nodes(grid, nodes, _WHO, timeout)
    if len(answers) < len(nodes):
        node = next(node for node in nodes if node not in answers)
        raise ProtocolError(f"node {node} does not give the name of its client: {errors.get(node, 'no answer')}")
    names = {node: answer.decode(errors="replace") for node, answer in answers.items()}
    if len(set(names.values())) < len(names):
        raise ProtocolError(f"two nodes have clients of the same name: {sorted(names.values())}")
    return {name: node for node, name in names.items()}


def _query_nodes(grid: Grid, nodes: list[int], text: bytes, timeout: float) -> tuple[dict[int, bytes], dict[int, str]]:
    """Send a query to nodes; return two dictionaries by node: the answers, and the errors of nodes that failed.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        The grid.
    nodes : list of int
        Nodes to ask.
    text : bytes
        The request.
    timeout : float
        Seconds to wait for answers.
    """
    asked = [_make_message(text, dst_node_id=node, message_type="query") for node in nodes]
    answers, errors = {}, {}
    for reply in grid.send_and_receive(asked, timeout=timeout):
        node = reply.metadata.src_node_id
        if reply.has_error():
            errors[node] = reply.error.reason or "see the log of its node"
        else:
            answers[node] = _read_bytes(reply)
    return answers, errors


def _wait_for_nodes(grid: Grid, n_clients: int, wait: float) -> list[int]:
    """Wait at most `wait` seconds until `n_clients` nodes are connected; return their identifiers.

    Raise a ProtocolError unless there are exactly `n_clients`.
    """
    end = time.monotonic() + wait
    while len(nodes := list(grid.get_node_ids())) < n_clients and time.monotonic() < end:
        time.sleep(_POLL)
    if len(nodes) != n_clients:
        raise ProtocolError(f"{len(nodes)} nodes are connected instead of {n_clients}; connect one node per client")
    return nodes


def _make_message(text: bytes, **fields: Any) -> Message:
    """Make a Flower message whose content is `text`; `fields` are further arguments of `flwr.app.Message`."""
    app = _import_flwr("app")
    return app.Message(content=app.RecordDict({_RECORD: app.ConfigRecord({_BYTES: text})}), **fields)


def _read_bytes(message: Message) -> bytes:
    """Return the bytes in a message of `_make_message`; b"" for any other message."""
    try:
        return bytes(message.content[_RECORD][_BYTES])
    except (KeyError, TypeError, ValueError):
        return b""


def _import_flwr(module: str) -> Any:
    """Import a module of flwr; raise an ImportError that says how to install it if it is missing."""
    try:
        return importlib.import_module(f"flwr.{module}")
    except ImportError:
        raise ImportError("powerkern.federated.flower needs flwr: pip install flwr") from None
