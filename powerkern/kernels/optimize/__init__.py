"""Minimisers and root finders for functions of one variable."""
