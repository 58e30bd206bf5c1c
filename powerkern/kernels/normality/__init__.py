"""How normal a sorted column looks: probability plot correlation, moments, Kolmogorov-Smirnov distance."""
