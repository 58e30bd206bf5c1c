"""Pages are doctests; the gallery runs when the documentation is built."""

import os

collect_ignore_glob = ["*gallery", "images", "_build"]
os.environ.setdefault("MPLBACKEND", "Agg")  # no screen is needed
