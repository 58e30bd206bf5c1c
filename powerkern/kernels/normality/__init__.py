"""Measures of the normality of a sorted column: probability plot correlation, moments, Kolmogorov-Smirnov distance."""
