"""Pages are doctests; the gallery runs when the documentation is built."""

import os

collect_ignore_glob = ["*gallery"]
os.environ.setdefault("MPLBACKEND", "Agg")  # no screen is needed
