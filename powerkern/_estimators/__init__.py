"""The estimators of lambda and what they have in common: limits, ties, shifts and power sums."""
