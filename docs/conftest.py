"""Pages are doctests; the gallery runs when the documentation is built."""

collect_ignore_glob = ["*gallery", "images", "_build"]
