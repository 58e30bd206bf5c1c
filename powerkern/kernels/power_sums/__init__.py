"""Likelihood from power sums on a grid: one pass, mergeable."""
