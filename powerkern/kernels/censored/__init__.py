"""Maximum likelihood of columns with censored cells, which are only known to lie in an interval."""
