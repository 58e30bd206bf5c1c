"""Maximum likelihood of one column: its logs, score, derivatives and optimum."""
