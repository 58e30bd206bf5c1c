"""Robust estimators of lambda for a sorted column."""
