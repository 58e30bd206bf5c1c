"""Fit columns by maximum likelihood from mergeable summaries: sums of powers of the logs, bin by bin."""
