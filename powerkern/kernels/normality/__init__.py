"""Normality criteria (Kolmogorov-Smirnov, PPCC) and the lambda that minimises them."""
