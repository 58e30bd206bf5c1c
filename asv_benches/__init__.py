"""Benchmarks for asv. A class measures one kernel or task; the libraries to compare are a parameter.

asv imports this module once and forks a process for each set of parameters. numba is therefore initialised here, which
takes half a second.
"""

import numba  # noqa: F401  (before powerkern, so that it knows kernels in a checkout that is not installed)

import powerkern

powerkern.fit([1.0, 2.0, 4.0])
