"""Federated fits of many sites in one process: time, rounds, bytes, and how far they are from the pooled fit.

References beside the repository (../shared/refs) are used where present; seeded columns stand in otherwise.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import powerkern as pk
from powerkern.federated import Client, Policy, Server, pairwise_secrets, run, secure

from ._measure import InTurns, matrix

N_SITES = 100
PROTOCOLS = {
    "sketch": {"protocol": "sketch"},
    "rounds": {"protocol": "rounds"},
    "rounds, Brent": {"protocol": "rounds", "search": "brent"},
    "rounds, grid": {"protocol": "rounds", "grid": 9},
}
REFERENCES = {"adversarial": "mle_reference.json", "real": "mle_reference_real_columns.json"}
FAMILIES = {"boxcox": "box-cox", "yeojohnson": "yeo-johnson"}
BOUNDS = 60.0

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "refs"


def skewed(x: np.ndarray, n_sites: int) -> list[np.ndarray]:
    """Site 0 has no rows, 1 positive values only, 2 negative ones only, 3 a constant; the rest has what is left."""
    rng = np.random.default_rng(1)
    site = rng.integers(4, n_sites, x.size)
    some = rng.random(x.size) < 0.2
    site[(x > 0) & some], site[(x < 0) & some] = 1, 2
    distinct = np.unique(x)
    site[x == distinct[distinct.size // 2]] = 3
    return [x[site == i].reshape(-1, 1) for i in range(n_sites)]


def cases(kind: str) -> list[tuple[str, np.ndarray]]:
    """Columns that can be fitted; not those whose optimum half an ulp in the data moves by more than 1e-3."""
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
    """A server that is done."""
    names = [f"site {i}" for i in range(len(parts))]
    dealt: dict[str, Any] = pairwise_secrets(names) if options.get("secure") else {}
    clients = [
        Client(part, name=name, secrets=dealt.get(name), policy=Policy.open(), n_threads=1)
        for name, part in zip(names, parts, strict=True)
    ]
    server = Server(names, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run(server, clients)
    return server


class HundredSites(InTurns):
    """Time, rounds and bytes of 100 sites; the pooled fit beside them."""

    params = (list(PROTOCOLS), [100_000], [10])
    param_names = ("protocol", "n", "p")

    def setup(self, protocol: str, n: int, p: int) -> None:
        self.x = matrix("yeo-johnson", n, p)
        self.parts = np.array_split(self.x, N_SITES)
        self.server = serve(self.parts, **PROTOCOLS[protocol])

    def track_time_over_pooled(self, protocol: str, n: int, p: int) -> float:
        self.compare({"federated": lambda: serve(self.parts, **PROTOCOLS[protocol]), "pooled": lambda: pk.fit(self.x)})
        return self.ratio("federated", "pooled")

    def track_rounds(self, protocol: str, n: int, p: int) -> int:
        return self.server.round

    def track_bytes_received_per_site_and_column(self, protocol: str, n: int, p: int) -> float:
        return self.server.bytes_received / (N_SITES * p)

    def track_bytes_sent_per_site_and_column(self, protocol: str, n: int, p: int) -> float:
        return self.server.bytes_sent / (N_SITES * p)

    def track_error(self, protocol: str, n: int, p: int) -> float:
        return float(np.abs(self.server.fit.lmbda - pk.fit(self.x).lmbda).max())


class Masked(InTurns):
    """Sums under masks beside sums in the open, of 20 sites."""

    params = (["sketch", "rounds"], [2_000], [3])
    param_names = ("protocol", "n", "p")

    def setup(self, protocol: str, n: int, p: int) -> None:
        self.x = np.clip(matrix("yeo-johnson", n, p), -BOUNDS, BOUNDS)
        self.parts = np.array_split(self.x, 20)
        self.options = {"protocol": protocol, "bounds": ([-BOUNDS] * p, [BOUNDS] * p)}
        self.server = serve(self.parts, secure=True, **self.options)

    def track_time_over_open(self, protocol: str, n: int, p: int) -> float:
        calls = {name: self._call(name == "masked") for name in ("masked", "open")}
        self.compare(calls)
        return self.ratio("masked", "open")

    def _call(self, masked: bool) -> Any:
        return lambda: serve(self.parts, secure=masked, **self.options)

    def track_bytes_received_per_site_and_column(self, protocol: str, n: int, p: int) -> float:
        return self.server.bytes_received / (20 * p)

    def track_error(self, protocol: str, n: int, p: int) -> float:
        return float(np.abs(self.server.fit.lmbda - pk.fit(self.x).lmbda).max())


class References:
    """Skewed sites on the reference columns: the worst error of lambda against the pooled fit, and the most rounds."""

    params = (list(PROTOCOLS), list(REFERENCES), [8])
    param_names = ("protocol", "columns", "sites")

    def setup(self, protocol: str, kind: str, sites: int) -> None:
        self.cases = cases(kind)[:: 1 if sites == N_SITES else 20]

    def _all(self, protocol: str, kind: str, sites: int) -> list[tuple[float, int, bool]]:
        found = []
        for family, x in self.cases:
            pooled = pk.fit(x, family).lmbda[0]
            server = serve(skewed(x, sites), family=family, **PROTOCOLS[protocol])
            error = abs(server.fit.lmbda[0] - pooled) / max(1.0, abs(pooled))
            found.append((float(error), server.round, bool(server.unresolved)))
        return found

    def track_worst(self, protocol: str, kind: str, sites: int) -> float:
        return max(error for error, _, _ in self._all(protocol, kind, sites))

    def track_most_rounds(self, protocol: str, kind: str, sites: int) -> int:
        return max(rounds for _, rounds, _ in self._all(protocol, kind, sites))

    def track_most_rounds_of_sketches(self, protocol: str, kind: str, sites: int) -> int:
        """Of the columns that the sketch resolves."""
        return max(rounds for _, rounds, unresolved in self._all(protocol, kind, sites) if not unresolved)

    def track_unresolved(self, protocol: str, kind: str, sites: int) -> int:
        """Columns that the sketch leaves to moments."""
        return sum(unresolved for _, _, unresolved in self._all(protocol, kind, sites))


class Masks(InTurns):
    """Megabytes of numbers that a site masks in a second, against one other site."""

    params = ([100_000],)
    param_names = ("n",)

    def track_megabytes_per_second(self, n: int) -> float:
        digits = secure.encode_words(np.arange(n))
        self.compare({"masks": lambda: secure.masked(digits, "a", {"b": bytes(32)}, b"context")})
        return 8e-6 * n / self.laps["masks"].wall
