"""Benchmarks, one file for each part of powerkern; run by asv, and by report.py."""
