"""Exponentials, logarithms, erf: accurate to about one ulp, and vectorised by LLVM."""
