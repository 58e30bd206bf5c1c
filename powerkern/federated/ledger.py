"""What a site has told, and must remember from one request to the next."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import MutableMapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes of a nonce, and of the secret from which a session's noise may be drawn.
NONCE_BYTES = 32
_KEY = "powerkern.federated"
#: Sessions that are remembered, those in which nothing was told forgotten first.
_KEPT = 1000


class Ledger:
    """Sessions of one site's rows: its nonces, which requests were answered, how much was asked.

    Parameters
    ----------
    memory : mutable mapping of str to bytes
        Where it is kept. What outlives the process has to be kept here too, or the limits of a policy start anew with
        every process.
    """

    def __init__(self, memory: MutableMapping[str, bytes]) -> None:
        self._memory = memory
        self._book: dict[str, Any] = {"rows": None, "sites": None, "sessions": {}}
        if _KEY in memory:
            self._book = json.loads(memory[_KEY])

    def rows_changed(self, digest: str) -> bool:
        """Whether the rows are others than those that anything was told of."""
        return self._book["rows"] not in (None, digest)

    def sites_changed(self, names: Sequence[str]) -> bool:
        """Whether sums were told in a fit of other sites."""
        return self._book["sites"] not in (None, sorted(names))

    def shift_changed(self, session: str, shift: list[float]) -> bool:
        """Whether anything was asked in this session about the columns plus another shift."""
        return self._session(session).get("shift") not in (None, shift)

    def is_known(self, session: str) -> bool:
        """Whether the session has been opened here."""
        return session in self._book["sessions"]

    def nonce(self, session: str) -> str:
        """The nonce of a session, which is drawn when it is first asked for."""
        return str(self._session(session)["nonce"])

    def noise_key(self, session: str) -> bytes:
        """A secret of this site and session."""
        return bytes.fromhex(self._session(session)["noise"])

    def answered(self, session: str, number: int) -> str | None:
        """Digest of the request that was answered in a round."""
        rounds: dict[str, str] = self._session(session)["rounds"]
        return rounds.get(str(number))

    def asked(self, session: str) -> int:
        """Number of questions of a session so far."""
        return int(self._session(session)["asked"])

    def sessions_told(self, session: str) -> int:
        """Number of sessions in which anything was asked, this one included."""
        return 1 + sum(bool(one["asked"]) for name, one in self._book["sessions"].items() if name != session)

    def is_unmasked(self, session: str) -> bool:
        """Whether masks of a session were told of, so that its total is known of one set of sites."""
        return bool(self._session(session).get("unmasked"))

    def note_unmasked(self, session: str) -> None:
        """Note that masks of a session are told of."""
        self._session(session)["unmasked"] = True
        self._save()

    def spent(self) -> float:
        """What all noisy counts of the rows cost so far: mu of `powerkern.federated.account.Account`."""
        return float(self._book.get("mu", 0.0))

    def spend(self, mu: float) -> None:
        """Note what noisy counts cost, these included."""
        self._book["mu"] = mu
        self._save()

    def charge(self, session: str, questions: int, rows: str, sites: Sequence[str] | None, shift: list[float]) -> None:
        """Note that so much is asked about these rows, whatever the answer will be."""
        self._session(session)["asked"] += questions
        self._session(session)["shift"] = shift
        self._book["rows"] = rows
        if sites is not None and self._book["sites"] is None:
            self._book["sites"] = sorted(sites)
        self._save()

    def note(self, session: str, number: int, digest: str) -> None:
        """Note which request was answered in a round."""
        self._session(session)["rounds"][str(number)] = digest
        self._save()

    def _session(self, session: str) -> dict[str, Any]:
        sessions: dict[str, dict[str, Any]] = self._book["sessions"]
        if session not in sessions:
            if len(sessions) >= _KEPT:
                del sessions[min(sessions, key=lambda name: sessions[name]["asked"] > 0)]
            nonce, noise = secrets.token_hex(NONCE_BYTES), secrets.token_hex(NONCE_BYTES)
            sessions[session] = {"nonce": nonce, "noise": noise, "asked": 0, "rounds": {}}
            self._save()
        return sessions[session]

    def _save(self) -> None:
        self._memory[_KEY] = json.dumps(self._book).encode()


def digest_of_rows(values: NDArray[Any], weight: NDArray[np.float64]) -> str:
    """What stands for rows and their weights, however they lie in memory."""
    digest = hashlib.blake2b(repr((values.shape, values.dtype.str)).encode(), digest_size=32)
    for column in values.T:
        digest.update(np.ascontiguousarray(column).data)
    digest.update(np.ascontiguousarray(weight).data)
    return digest.hexdigest()
