"""Runs at every site: the node's configuration names the file of its rows."""

import numpy as np
from flwr.app import Context

from powerkern.federated import Client
from powerkern.federated.flower import client_app


def make_client(context: Context) -> Client:
    config = context.node_config
    rows = np.genfromtxt(str(config["rows"]), delimiter=",", skip_header=1, ndmin=2)
    return Client(rows, name=str(config["name"]), sums_only=True)


app = client_app(make_client)
