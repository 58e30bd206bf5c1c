"""Differential fuzz: fits of columns made to be difficult, against ball arithmetic.

``python -m tests.fuzz --columns 20000 --seed 1`` is a long run; `test_fuzz.py` has a short one. The parts:

* `columns`: what is fitted, made from a seed;
* `oracle`: the likelihood and the transforms in ball arithmetic; imports nothing of powerkern;
* `checks`: what has to hold of a fit;
* `others`: and of what is built on fits;
* `run`: runs, totals, and the replay of a single column.
"""
