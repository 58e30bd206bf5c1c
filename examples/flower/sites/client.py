"""What runs at every site: its rows are read from the CSV file that the node's configuration names."""

import numpy as np
from flwr.app import Context

from powerkern.federated import Client
from powerkern.federated.flower import client_app, client_name


def make_client(context: Context) -> Client:
    rows = np.genfromtxt(str(context.node_config["data"]), delimiter=",", skip_header=1, ndmin=2)
    return Client(rows, name=client_name(context), min_size=10)


app = client_app(make_client)
