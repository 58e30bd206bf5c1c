"""Maximum likelihood of columns in which of some cells only an interval is known."""
