"""From NumPy to kernels: threads, columns made contiguous, matrices divided into parts. No numerics.

Entries of `powerkern.kernels` take contiguous, writable float64 vectors, one per column, and scratch space; users bring
matrices of any order, stride and dtype. What is in between stands here:

* `threads`: how many, and how a list of parts is worked off on them, with progress and prompt interruption;
* `shifted`: a matrix with a number added to each column;
* `gather`: columns copied into contiguous scratch, and back;
* `blocks`: how a matrix is divided into groups of columns, blocks of rows, and blocks that fit the cache;
* `by_column`: a kernel called for every column;
* `by_row_block`: a kernel called for every block of rows of every column, where columns are long;
* `apply`: transforms of whole matrices, by column or along the rows;
* `one_column`: kernels called for one vector, where microseconds matter, and to trace one column.
"""
