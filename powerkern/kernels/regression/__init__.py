"""Maximum likelihood of lambda for a response, given covariates."""
