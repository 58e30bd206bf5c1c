"""Whatever a server or a client is sent, it answers, or refuses with the documented error, and it goes on.

Some thousands of messages and some hundred conversations here; more by
``python tests/federated/test_hostile.py 100000 10000`` (messages, conversations, and optionally a seed).
"""

from __future__ import annotations

import json
import struct
import sys
import warnings
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from powerkern.federated import Client, Policy, ProtocolError, Server, pairwise_secrets
from powerkern.federated.messages import Kind, as_body, pack, unpack

NAMES = ["a", "b", "c"]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 2.0, 1e18, 1e308, -1e308, 5e-324, 2.0**53, 2.0**63, -(2.0**63), 65536.0, 0.5]
NUMBERS += [np.nan, np.inf, -np.inf]
WHOLE = [0, 1, -1, 2**31, 2**61, 2**63 - 1, -(2**63)]
JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    2,
    10**30,
    0.5,
    "",
    "a",
    "server",
    [],
    [1],
    ["a", "a"],
    {},
    {"a": 1},
    "ab" * 40,
]
MODES: list[dict[str, Any]] = [
    {"protocol": "sketch"},
    {"protocol": "rounds"},
    {"protocol": "rounds", "family": "box-cox", "search": "brent", "grid": 3},
    {"protocol": "sketch", "family": "box-cox", "ymax": 1e6},
    {"secure": True},
    {"secure": True, "protocol": "sketch", "bounds": ([0.0, 0.0], [64.0, 64.0])},
    {"secure": True, "family": "box-cox", "lmbda": [0.5, np.nan]},
]


def conversation(rng: np.random.Generator, mode: dict[str, Any]) -> tuple[Server, list[Client]]:
    rows = rng.lognormal(size=(36, 2))
    rows[:, 1] = rng.choice([rows[:, 1], np.full(36, 2.0), np.full(36, np.nan), np.arange(36) + 1.0])
    dealt = pairwise_secrets(NAMES) if mode.get("secure") else {}
    policy = Policy(kinds=("code", "moments", "sketch"), bins=4096, rows_per_bin=1) if dealt else Policy.open()
    clients = [
        Client(part, name=name, secrets=dealt.get(name), policy=policy, n_threads=1)
        for name, part in zip(NAMES, np.array_split(rows, 3), strict=True)
    ]
    return Server(NAMES, **mode), clients


# --- mutations ----------------------------------------------------------------------------------------


def poked(rng: np.random.Generator, body: np.ndarray) -> np.ndarray:
    """A body with some numbers replaced, or of another shape or kind."""
    way = rng.integers(8)
    if way == 0:
        return body.reshape(-1)[: rng.integers(body.size + 1)]
    if way == 1:
        return np.concatenate([body.reshape(-1), body.reshape(-1)[:3]])
    if way == 2:
        return [np.zeros((2, 1, 12)), np.empty(0), np.zeros((1, 12)), np.zeros((3, 14), np.uint32)][rng.integers(4)]
    body = body.copy()
    flat = body.reshape(-1)
    for _ in range(rng.integers(1, 4) if flat.size else 0):
        at = rng.integers(flat.size)
        if body.dtype.kind == "f":
            flat[at] = rng.choice([*NUMBERS, -flat[at], np.nextafter(flat[at], 9.0), flat[rng.integers(flat.size)]])
        else:
            flat[at] = rng.integers(np.iinfo(body.dtype).max, endpoint=True)
    return body


def poked_summary(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes of a range, grid or sketch, changed behind a checksum that is right."""
    length = struct.unpack_from("<I", data, 7)[0]
    record, payload = json.loads(data[11 : 11 + length]), bytearray(data[11 + length : -4])
    if rng.random() < 0.25:
        record[rng.choice(list(record))] = JUNK[rng.integers(len(JUNK))]
    for _ in range(rng.integers(0, 4)):
        at = 8 * int(rng.integers(max(1, min(len(payload) // 8, 14 if rng.random() < 0.5 else 10**9))))
        if rng.random() < 0.5:
            struct.pack_into("<d", payload, at, rng.choice(NUMBERS))
        else:
            struct.pack_into("<q", payload, at, WHOLE[rng.integers(len(WHOLE))])
    text = json.dumps(record).encode()
    body = data[:7] + struct.pack("<I", len(text)) + text + bytes(payload)
    return body + struct.pack("<I", zlib.crc32(body))


def mutated(rng: np.random.Generator, data: bytes, sender: str) -> bytes:
    """A message changed in one of many ways, mostly behind checksums that are right."""
    way = rng.integers(10)
    if way == 0:
        at = rng.integers(len(data))
        return data[:at] + bytes([rng.integers(256)]) + data[at + 1 :]
    if way == 1:
        return data[: rng.integers(len(data))]
    message = unpack(data, sender)
    if way == 2:
        field = str(rng.choice(["session", "round", "sender"]))
        return pack(message._replace(**{field: JUNK[rng.integers(len(JUNK))]}))
    if way == 3:
        return pack(message._replace(kind=Kind(int(rng.integers(1, 9)))))
    if way in (4, 5) and message.details:
        details = json.loads(json.dumps(message.details))
        name = str(rng.choice([*details, "clients", "openings"]))
        inner = details.get(name)
        if isinstance(inner, dict) and inner and rng.random() < 0.7:
            inner[str(rng.choice(list(inner)))] = JUNK[rng.integers(len(JUNK))]
        else:
            details[name] = JUNK[rng.integers(len(JUNK))]
        return pack(message._replace(details=details))
    if message.body.dtype == np.uint8 and message.body.size > 40 and rng.random() < 0.9:
        return pack(message._replace(body=as_body(poked_summary(rng, message.body.tobytes()))))
    return pack(message._replace(body=poked(rng, message.body)))


# --- what is done with them ---------------------------------------------------------------------------


def send_mutations(rng: np.random.Generator, total: int) -> Counter[str]:
    """Mutated requests and answers of all kinds of conversations, in every round of them."""
    told: Counter[str] = Counter()
    while told.total() < total:
        server, clients = conversation(rng, MODES[rng.integers(len(MODES))])
        try:
            while not server.done:
                for client in clients:
                    told += _mutations_of(rng, server, client)
                server.close_round()
        except ProtocolError:
            continue  # something was taken that ended the fit
        told[
            _outcome(lambda end=server.announcement, client=clients[0]: client.accept(mutated(rng, end, "server")))
        ] += 1
    return told


def _mutations_of(rng: np.random.Generator, server: Server, client: Client) -> Counter[str]:
    told: Counter[str] = Counter()
    request = server.request
    answer = client.answer(request)
    for _ in range(4):
        told[_outcome(lambda: server.receive(mutated(rng, answer, client.name), sender=client.name))] += 1
        told[_outcome(lambda: client.answer(mutated(rng, request, "server")))] += 1
    if client.name in server.missing:
        server.receive(answer, sender=client.name)
    return told


def _outcome(action: Any) -> str:
    try:
        action()
    except ProtocolError:
        return "refused"
    return "taken"


def hostile_conversation(rng: np.random.Generator) -> str:
    """One client that sends what it likes, as often as it likes, until it is believed; or a server that does."""
    server, clients = conversation(rng, MODES[rng.integers(len(MODES))])
    bad, server_too = rng.choice(NAMES), rng.random() < 0.3
    for _ in range(40):
        request = server.request
        for client in clients:
            asked = mutated(rng, request, "server") if server_too and rng.random() < 0.3 else request
            if asked is not request:
                _outcome(lambda client=client, asked=asked: client.answer(asked))
            try:
                answer = client.answer(request)
            except ProtocolError:
                return "given up by a client"
            for attempt in range(4):
                sent = mutated(rng, answer, client.name) if client.name == bad and attempt < 3 else answer
                if client.name in server.missing:
                    _outcome(lambda sent=sent, name=client.name: server.receive(sent, sender=name))
        try:
            server.close_round()
        except ProtocolError:
            return "given up"
        if server.done:
            server.fit.transform(np.ones((2, server.fit.n_features)))
            return "done"
    return "endless"


def fuzz_conversations(rng: np.random.Generator, total: int) -> Counter[str]:
    return Counter(hostile_conversation(rng) for _ in range(total))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mutated_messages_are_refused_or_taken() -> None:
    told = send_mutations(np.random.default_rng(0), 4_000)
    assert told["refused"] > 3_000
    assert told["taken"] > 100


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hostile_conversations_end() -> None:
    told = fuzz_conversations(np.random.default_rng(1), 60)
    assert told["endless"] == 0
    assert told["done"] > 10


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", UserWarning)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    print("messages:", dict(send_mutations(np.random.default_rng(seed), int(sys.argv[1]))))
    print("conversations:", dict(fuzz_conversations(np.random.default_rng(seed + 1), int(sys.argv[2]))))
