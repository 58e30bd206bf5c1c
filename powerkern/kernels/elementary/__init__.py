"""Exponentials, logarithms, erf and normal probabilities that LLVM can vectorise, accurate to about one ulp."""
