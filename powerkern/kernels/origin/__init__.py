"""Maximum likelihood of lambda, origin and unit together."""
