"""Three sites and a server on this machine: ``python examples/flower/run.py``.

Starts a superlink and three supernodes, each with a CSV file of its own, runs the app of this folder on them, with sums
by SecAgg+, and compares the fit with the fit of the pooled rows. Needs flwr: ``pip install 'powerkern[flower]'``.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import powerkern as pk

HERE = Path(__file__).resolve().parent
#: Sites of different size and kind.
ROWS = {"ulm": 50, "graz": 400, "basel": 1500}


def rows_of(site: str) -> np.ndarray:
    number = list(ROWS).index(site)
    rng = np.random.default_rng(number)
    x = rng.normal(size=(ROWS[site], 3)) * [1.0, 5.0, 0.5] + [number, 0.0, 10.0]
    x[:, 0] = np.exp(x[:, 0])
    x[::9, 1] = np.nan
    return x


def write_rows(folder: Path) -> None:
    """A file of rows for every site."""
    for site in ROWS:
        np.savetxt(folder / f"{site}.csv", rows_of(site), delimiter=",", header="a,b,c")


def free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run(folder: Path, timeout: float) -> pk.PowerFit:
    """Start everything, run the app, read its fit, stop everything."""
    write_rows(folder)
    link, *nodes = free_ports(1 + len(ROWS))
    (folder / "config.toml").write_text(
        f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    tools = Path(sys.executable).parent
    environment = {**os.environ, "FLWR_HOME": str(folder), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    processes = []

    def start(name: str, *arguments: str) -> None:
        log = (folder / f"{name}.log").open("w")
        command = [str(tools / name.partition("-of-")[0]), *arguments]
        processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))

    result = folder / "fit.json"
    try:
        start("flower-superlink", "--insecure", "--disable-runtime-dependency-installation", "--port", str(link))
        for site, port in zip(ROWS, nodes, strict=True):
            config = f'name="{site}" rows="{folder / site}.csv"'
            where = ("--superlink", f"127.0.0.1:{link}", "--port", str(port))
            start(f"flower-supernode-of-{site}", "--insecure", *where, "--node-config", config)
        wait_for(lambda: answers(link), timeout, "the superlink")
        config = f'result="{result}" clients={len(ROWS)}'
        command = [str(tools / "flwr"), "run", str(HERE), "here", "--run-config", config]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        wait_for(result.exists, timeout, "the fit")
        return pk.PowerFit.from_json(result.read_text())
    except TimeoutError:
        for log in sorted(folder.glob("*.log")):
            print(log.name, *log.read_text().splitlines()[-20:], sep="\n", file=sys.stderr)
        raise
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def answers(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what: Callable[[], bool], timeout: float, name: str) -> None:
    end = time.monotonic() + timeout
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {timeout:g} s for {name}")
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds to wait for the fit")
    options = parser.parse_args()
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        fit = run(Path(folder), options.timeout)
    pooled = pk.fit(np.concatenate([rows_of(site) for site in ROWS]))
    print(f"{len(ROWS)} sites, sums by SecAgg+, {time.perf_counter() - begin:.0f} s")
    print("lambda, federated:", fit.lmbda)
    print("lambda, pooled:   ", pooled.lmbda)
    print("bound of the error:", fit.lmbda_error)
    print(f"largest difference: {np.abs(fit.lmbda - pooled.lmbda).max():.1e}")


if __name__ == "__main__":
    main()
