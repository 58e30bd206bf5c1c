"""Likelihood of a transformed response given covariates."""
