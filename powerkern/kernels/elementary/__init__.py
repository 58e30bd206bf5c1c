"""Exponentials, logarithms, the error function and normal quantiles that LLVM vectorises, accurate to about one ulp."""
