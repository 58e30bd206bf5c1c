"""The results of fits: parameters, likelihood, back-transformation, summaries, JSON."""
