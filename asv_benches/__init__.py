"""Benchmarks for asv: a class for each kernel and job, with the peers as a parameter.

asv forks a process for each set of parameters from one that has imported this module, so the initialisation of numba,
half a second per process, is done here.
"""

import numba  # noqa: F401  (before powerkern, so that it knows kernels in a checkout that is not installed)

import powerkern

powerkern.fit([1.0, 2.0, 4.0])
