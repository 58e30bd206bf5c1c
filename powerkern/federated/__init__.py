"""Federated fits: one power transform for rows that stay at several sites."""

from powerkern._input.messages import suggest_keywords
from powerkern.federated.client import Client
from powerkern.federated.messages import ProtocolError
from powerkern.federated.server import Server
from powerkern.federated.transport import fit_federated

__all__ = ["Client", "ProtocolError", "Server", "fit_federated"]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
