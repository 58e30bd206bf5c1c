"""Regression and joint models: designs, problems, likelihoods."""
