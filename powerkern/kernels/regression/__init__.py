"""Estimate lambda of a response by maximum likelihood, given covariates."""
