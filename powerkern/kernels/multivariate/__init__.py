"""Kernels for several columns at once: products, conditional means, completion, neighbours, deviating cells."""
