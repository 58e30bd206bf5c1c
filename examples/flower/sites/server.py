"""What runs at the server: the fit is written to the file that the run's configuration names."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from powerkern.federated import flower

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    fit = flower.fit(grid, n_clients=int(config["clients"]), family=str(config["family"]), secure=True)
    result = Path(str(config["result"]))
    unfinished = result.with_suffix(".part")
    unfinished.write_text(fit.to_json())
    unfinished.replace(result)
