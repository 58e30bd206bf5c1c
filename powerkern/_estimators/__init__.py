"""The estimators of lambda, and their common parts: limits, ties, shifts, power sums."""
