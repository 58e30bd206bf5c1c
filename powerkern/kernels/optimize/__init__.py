"""Minimisers and root finders of one variable."""
