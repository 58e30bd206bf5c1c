"""Implementations of the ``powerkern`` commands, one module per command."""
