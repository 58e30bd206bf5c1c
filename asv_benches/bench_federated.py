"""Federated fits of many sites in one process: time, rounds, bytes, and error relative to the pooled fit.

References beside the repository (../shared/refs) are used if present, else seeded columns.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import powerkern as pk
from powerkern.federated import Client, Server

from ._measure import InTurns, matrix

N_SITES = 100
METHODS: dict[str, dict[str, Any]] = {
    "Newton": {},
    "Brent": {"search": "brent"},
    "integers": {"quantum": 2.0**-80},
}
REFERENCES = {"adversarial": "mle_reference.json", "real": "mle_reference_real_columns.json"}
FAMILIES = {"boxcox": "box-cox", "yeojohnson": "yeo-johnson"}

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "refs"


def skewed(x: np.ndarray, n_sites: int) -> list[np.ndarray]:
    """Split a column unevenly among `n_sites` sites.

    Site 0 has no rows, site 1 positive values, site 2 negative values, site 3 one repeated value. Others get the rest.
    """
    rng = np.random.default_rng(1)
    site = rng.integers(4, n_sites, x.size)
    some = rng.random(x.size) < 0.2
    site[(x > 0) & some], site[(x < 0) & some] = 1, 2
    distinct = np.unique(x)
    site[x == distinct[distinct.size // 2]] = 3
    return [x[site == i].reshape(-1, 1) for i in range(n_sites)]


def cases(kind: str) -> list[tuple[str, np.ndarray]]:
    """Return family and values of the well-conditioned reference columns of a kind.

    Half-ulp changes of their values move the optimum by less than 1e-3.
    """
    path = _SHARED / REFERENCES[kind]
    if not path.exists():
        raise NotImplementedError(f"no reference values at {_SHARED}")
    records = json.loads(path.read_text())["cases"]
    return [
        (FAMILIES[r["transform"]], np.array([float(v) for v in r["data"]]))
        for r in records
        if r["class"] in ("well", "ill") and float(r["half_ulp_sensitivity"]) < 1e-3
    ]


def serve(parts: list[np.ndarray], **options: Any) -> Server:
    """Run all rounds of a federated fit of sites with the values `parts`; return the server."""
    clients = [Client(part, name=f"site {i}", n_threads=1) for i, part in enumerate(parts)]
    server = Server([client.name for client in clients], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        while not server.done:
            if server.wants_total:
                server.receive_total(np.sum([client.summands(server.request) for client in clients], axis=0))
            else:
                for client in clients:
                    server.receive(client.answer(server.request), sender=client.name)
            server.close_round()
    return server


class HundredSites(InTurns):
    """A fit of 100 sites: time and lambda compared with the pooled fit, rounds, and bytes per site and column."""

    params = (list(METHODS), [100_000], [10])
    param_names = ("method", "n", "p")

    def setup(self, method: str, n: int, p: int) -> None:
        self.x = matrix("yeo-johnson", n, p)
        self.parts = np.array_split(self.x, N_SITES)
        self.server = serve(self.parts, **METHODS[method])

    def track_time_over_pooled(self, method: str, n: int, p: int) -> float:
        self.compare({"federated": lambda: serve(self.parts, **METHODS[method]), "pooled": lambda: pk.fit(self.x)})
        return self.ratio("federated", "pooled")

    def track_rounds(self, method: str, n: int, p: int) -> int:
        return self.server.round

    def track_bytes_received_per_site_and_column(self, method: str, n: int, p: int) -> float:
        return self.server.bytes_received / (N_SITES * p)

    def track_bytes_sent_per_site_and_column(self, method: str, n: int, p: int) -> float:
        return self.server.bytes_sent / (N_SITES * p)

    def track_error(self, method: str, n: int, p: int) -> float:
        return float(np.abs(self.server.fit.lmbda - pk.fit(self.x).lmbda).max())


class References:
    """Largest error of lambda and largest number of rounds for reference columns split unevenly among sites."""

    params = (list(METHODS), list(REFERENCES), [8])
    param_names = ("method", "columns", "sites")

    def setup(self, method: str, kind: str, sites: int) -> None:
        self.cases = cases(kind)[:: 1 if sites == N_SITES else 20]

    def _all(self, method: str, kind: str, sites: int) -> list[tuple[float, int]]:
        found = []
        for family, x in self.cases:
            pooled = pk.fit(x, family).lmbda[0]
            server = serve(skewed(x, sites), family=family, **METHODS[method])
            error = abs(server.fit.lmbda[0] - pooled) / max(1.0, abs(pooled))
            found.append((float(error), server.round))
        return found

    def track_worst(self, method: str, kind: str, sites: int) -> float:
        """Track the largest difference of lambda from the pooled fit, relative to max(1, |lambda|)."""
        return max(error for error, _ in self._all(method, kind, sites))

    def track_most_rounds(self, method: str, kind: str, sites: int) -> int:
        return max(rounds for _, rounds in self._all(method, kind, sites))
