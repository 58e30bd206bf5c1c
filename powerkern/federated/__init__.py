"""Federated fits: power transforms of rows that stay where they are."""

from powerkern.federated.client import Client
from powerkern.federated.keys import SiteKey, agreed_secrets, fingerprint
from powerkern.federated.memory import FileMemory
from powerkern.federated.messages import ProtocolError
from powerkern.federated.policy import Policy
from powerkern.federated.privacy import Privacy, fit_private
from powerkern.federated.secure import pairwise_secrets
from powerkern.federated.server import Server
from powerkern.federated.transport import fit_federated, run

__all__ = [
    "Client",
    "FileMemory",
    "Policy",
    "Privacy",
    "ProtocolError",
    "Server",
    "SiteKey",
    "agreed_secrets",
    "fingerprint",
    "fit_federated",
    "fit_private",
    "pairwise_secrets",
    "run",
]
