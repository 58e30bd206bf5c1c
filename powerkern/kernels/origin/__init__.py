"""Maximum likelihood of lambda, origin and unit jointly."""
