"""Runs at the server: writes the fit to the file that the run's configuration names."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from powerkern.federated import flower

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    fit = flower.fit(
        grid,
        n_clients=int(config["clients"]),
        context=context,  # SecAgg+ adds the integers
        quantum=2.0**-80,
        data_bounds=([0.0, -30.0, 5.0], [200.0, 30.0, 20.0]),  # from the meaning of the columns
    )
    result = Path(str(config["result"]))
    unfinished = result.with_suffix(".part")
    unfinished.write_text(fit.to_json())
    unfinished.replace(result)
