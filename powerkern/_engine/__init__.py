"""Connect NumPy arrays to kernels by means of threads, contiguous copies of columns, and parts of matrices.

Entries of `powerkern.kernels` take contiguous, writable float64 vectors, one per column, and scratch space; users pass
matrices of any order, stride and dtype. This package connects the two:

* `threads`: process a list of parts on several threads, with progress and prompt interruption;
* `gather`: copy columns into contiguous scratch, optionally shifted and scaled, and back;
* `blocks`: divide a matrix into groups of columns, blocks of rows, and blocks that fit the cache;
* `by_column`: call a kernel for every column;
* `by_row_block`: call a kernel for every block of rows of every column, for long columns;
* `censored`: call a kernel for every column with censored cells; `fingerprints`: compute fingerprints of columns;
* `lines`: pass matrices to kernels as rows or columns ("lines") in place;
* `apply`: transform whole matrices along lines, and column by column where values need full precision;
* `ragged`: groups of different lengths as columns of a matrix; `products`: matrix products on several threads;
* `one_column`: call kernels for a single vector, with little overhead or to trace the fit in a debugger.
"""
