"""Robust estimators of lambda for one sorted column."""
