"""Send integers through Flower's SecAgg+ without loss.

SecAgg+ clips numbers to +-8 and rounds them to 22 bits, that is, to multiples of 2**-18. Numbers between two multiples
are rounded at random. An entry of `Client.summands` is an integer within +-2**20. Times 2**-18, it lies within +-4 and
is a multiple of 2**-18, so it is not rounded. SecAgg+ returns the mean over the sites. The mean times the number of
sites differs from a multiple of 2**-18 by less than half of 2**-18.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from flwr.common import Code, FitIns, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.compat.common import recorddict_compat as compat
from flwr.server import LegacyContext
from flwr.server.strategy import FedAvg
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.serverapp import Grid
from numpy.typing import NDArray

from powerkern.federated.integers import Integers
from powerkern.federated.messages import ProtocolError

_BYTES = "powerkern"
_CLIPPING, _LEVELS = 8.0, 2**22
_STEP = 2.0 * _CLIPPING / _LEVELS
#: Largest number of sites. The total of the weights, `_LEVELS` each, must stay below the modulus 2**32 of SecAgg+.
_MOST_SITES = 1023


def read_request(message: Message) -> bytes:
    """Return the request in a training message."""
    return bytes(compat.recorddict_to_fitins(message.content, keep_input=True).config[_BYTES])


def make_reply(message: Message, vector: Integers) -> Message:
    """Return the reply to a training message, with the vector of a site as its result and weight 1."""
    result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters([vector * _STEP]), num_examples=1, metrics={})
    return Message(compat.fitres_to_recorddict(result, keep_input=False), reply_to=message)


class _SumStrategy(FedAvg):  # type: ignore[misc]
    """Flower strategy that sends a request to a list of nodes and stores the total of their vectors."""

    def __init__(self, nodes: list[int], request: bytes) -> None:
        super().__init__()
        self.nodes, self.request = nodes, request
        self.total: NDArray[np.int64] | None = None

    def configure_fit(self, server_round: int, parameters: Any, client_manager: Any) -> Any:
        return [
            (SimpleNamespace(node_id=node), FitIns(Parameters([], ""), {_BYTES: self.request})) for node in self.nodes
        ]

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        (mean,) = parameters_to_ndarrays(results[0][1].parameters)
        self.total = np.rint(mean * (len(results) / _STEP)).astype(np.int64)
        return None, {}


def secure_total(grid: Grid, context: Context, nodes: list[int], request: bytes, timeout: float) -> NDArray[np.int64]:
    """Run one secure sum: send a request to all nodes, and return the total of their vectors.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        The grid that Flower passes to a server app.
    context : flwr.app.Context
        The context that Flower passes to a server app.
    nodes : list of int
        Nodes that receive the request.
    request : bytes
        The request.
    timeout : float
        Seconds to wait for answers.

    Raises
    ------
    ProtocolError
        If there are fewer than 3 or more than 1023 nodes, or if a node was lost.
    """
    if not 3 <= len(nodes) <= _MOST_SITES:
        raise ProtocolError(f"SecAgg+ needs 3 to {_MOST_SITES} sites, got {len(nodes)}")
    strategy = _SumStrategy(nodes, request)
    legacy = LegacyContext(context, strategy=strategy)
    legacy.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord({Key.CURRENT_ROUND: 1})
    legacy.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()
    workflow = SecAggPlusWorkflow(
        1.0, 1.0, max_weight=1.0, clipping_range=_CLIPPING, quantization_range=_LEVELS, timeout=timeout
    )
    workflow(grid, legacy)
    if strategy.total is None:
        raise ProtocolError("SecAgg+ gave no total: a site failed or was lost; see the logs, and start a new fit")
    return strategy.total
