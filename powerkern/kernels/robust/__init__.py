"""Robust estimators of lambda, of one sorted column."""
