"""Differential fuzz tests: fits of difficult columns against ball arithmetic.

``python -m tests.fuzz --columns 20000 --seed 1`` is a long run; `test_fuzz.py` has a short one. Modules: `columns`
generates the data from a seed; `oracle` computes likelihood and transforms in ball arithmetic and imports nothing of
powerkern; `checks` tests the properties of fits; `others` tests functions built on fits; `run` has runs, totals, and
the replay of a single column.
"""
