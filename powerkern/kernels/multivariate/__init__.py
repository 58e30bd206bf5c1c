"""Kernels of several columns at once: products, conditional means, completion, neighbours, deviating cells."""
