"""Likelihoods from power sums of logs on a grid of bins: one pass over the data, and mergeable."""
