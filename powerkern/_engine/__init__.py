"""From NumPy to kernels: threads, columns made contiguous, matrices divided into parts. No numerics.

Entries of `powerkern.kernels` take contiguous, writable float64 vectors, one per column, and scratch space; users pass
matrices of any order, stride and dtype. This package connects the two:

* `threads`: their number, and the processing of a list of parts, with progress and prompt interruption;
* `gather`: columns copied into contiguous scratch, perhaps shifted, and back;
* `blocks`: the division of a matrix into groups of columns, blocks of rows, and blocks that fit the cache;
* `by_column`: kernels called for every column;
* `by_row_block`: kernels called for every block of rows of every column, for long columns;
* `lines`: matrices handed to kernels with their rows or columns as lines;
* `apply`: transforms of whole matrices, along lines, and by column where values are not ordinary;
* `ragged`: groups of different lengths as columns of a matrix; `products`: products of matrices on all threads;
* `one_column`: kernels called for a single vector, with little overhead, and to trace one column.
"""
