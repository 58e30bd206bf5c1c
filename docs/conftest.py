"""The gallery runs when the documentation is built, not as doctests."""

collect_ignore_glob = ["*gallery"]
