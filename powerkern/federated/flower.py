"""Federated fits over Flower: the messages travel as its queries.

Flower starts a process for every message, so a round costs seconds whatever is in it, and clients remember from one
round to the next what they keep in files (`FileMemory`). Needs flwr 1.41 or later: ``pip install 'powerkern[flower]'``.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from powerkern._fit.fitting import PowerFit
from powerkern.federated.client import Client
from powerkern.federated.messages import ProtocolError
from powerkern.federated.server import Server

if TYPE_CHECKING:
    from flwr.app import Context, Message
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid

_RECORD, _BYTES = "powerkern", "message"
_POLL = 1.0
#: What is asked of a node to learn what its client is called.
_WHO = b""

_log = logging.getLogger(__name__)


def client_name(context: Context) -> str:
    """A name for the site that a client app runs at, if it has no better one: the number that Flower gave to its node.

    Sites that share secrets need names that they know of each other beforehand, and Flower's numbers are new with every
    connection.

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
        Given Flower's context, the site's `Client`. It is called for every message: a good place to read the data,
        with what ``context.node_config`` says. Give it a `FileMemory`: what a client remembers otherwise is lost with
        the process, and with it the fit, the limits of its policy and, under masks, the nonces.

    Returns
    -------
    flwr.clientapp.ClientApp
        What goes wrong at a site is logged there; the server hears the text of a `ProtocolError`, which holds no
        values, and of other errors nothing but their type.
    """
    app = _flwr("clientapp").ClientApp()

    @app.query()  # type: ignore[untyped-decorator]
    def _answer(message: Message, context: Context) -> Message:
        return _message(_answer_of(make_client, context, _bytes_in(message)), reply_to=message)

    return app


def _answer_of(make_client: Callable[[Context], Client], context: Context, request: bytes) -> bytes:
    """The answer of a site, or an error that tells nothing of its rows."""
    try:
        client = make_client(context)
        return client.name.encode() if request == _WHO else client.answer(request)
    except ProtocolError as error:
        _log.warning("%s", error.detail)
        told = str(error)
    except Exception as error:
        _log.exception("no answer")
        told = f"its client failed with {type(error).__name__}; the log of the site says more"
    raise ProtocolError(told)


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
        Of `powerkern.federated.Server`. With ``recover=True`` clients that fail or do not answer in time are lost, if
        they can be.

    Returns
    -------
    PowerFit

    Raises
    ------
    ProtocolError
        Too few or too many nodes are there; a client failed, did not answer or was refused.
    """
    nodes = _names(grid, _nodes(grid, n_clients, wait), timeout)
    server = Server(sorted(nodes), family=family, **options)
    while not server.done:
        failures = _round(grid, nodes, server, timeout)
        for name in server.missing if options.get("recover") else []:
            server.lose(name)
        if server.missing and failures:
            raise ProtocolError("; ".join(failures))
        server.close_round()
    return server.fit


def _round(grid: Grid, nodes: dict[str, int], server: Server, timeout: float) -> list[str]:
    """Take the answers of a round; why there are none of some."""
    failures = []
    answers, errors = _asked(grid, [nodes[name] for name in server.missing], server.request, timeout)
    for name, node in nodes.items():
        if node in errors:
            failures.append(f"client {name!r} failed: {errors[node]}")
        elif node in answers:
            server.receive(answers[node], sender=name)
    return failures


def _names(grid: Grid, nodes: list[int], timeout: float) -> dict[str, int]:
    """The node of each client, by what it calls itself."""
    answers, errors = _asked(grid, nodes, _WHO, timeout)
    if len(answers) < len(nodes):
        node = next(node for node in nodes if node not in answers)
        raise ProtocolError(f"node {node} does not say what its client is called: {errors.get(node, 'no answer')}")
    names = {node: answer.decode(errors="replace") for node, answer in answers.items()}
    if len(set(names.values())) < len(names):
        raise ProtocolError(f"two nodes have clients of one name: {sorted(names.values())}")
    return {name: node for node, name in names.items()}


def _asked(grid: Grid, nodes: list[int], text: bytes, timeout: float) -> tuple[dict[int, bytes], dict[int, str]]:
    """What nodes answer, and why some do not."""
    asked = [_message(text, dst_node_id=node, message_type="query") for node in nodes]
    answers, errors = {}, {}
    for reply in grid.send_and_receive(asked, timeout=timeout):
        node = reply.metadata.src_node_id
        if reply.has_error():
            errors[node] = reply.error.reason or "see the log of its node"
        else:
            answers[node] = _bytes_in(reply)
    return answers, errors


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
