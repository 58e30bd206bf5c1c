"""The estimators of lambda, and what they share: limits, ties, shifts, power sums."""
