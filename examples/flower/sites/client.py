"""What runs at every site: the node's configuration names the folder of its rows, its keys and what it remembers."""

import json
from pathlib import Path

import numpy as np
from flwr.app import Context

from powerkern.federated import Client, FileMemory, SiteKey, agreed_secrets
from powerkern.federated.flower import client_app


def make_client(context: Context) -> Client:
    folder = Path(str(context.node_config["folder"]))
    rows = np.genfromtxt(folder / "rows.csv", delimiter=",", skip_header=1, ndmin=2)
    key = SiteKey((folder / "private.key").read_bytes())
    public_keys = json.loads((folder / "public_keys.json").read_text())
    return Client(
        rows,
        name=str(context.node_config["name"]),
        secrets=agreed_secrets(key, {site: bytes.fromhex(told) for site, told in public_keys.items()}),
        memory=FileMemory(folder / "memory"),
    )


app = client_app(make_client)
