"""Tables in files, for the command line: CSV (also .tsv, also compressed), Parquet and .npy, in blocks of rows.

A table is read as float64 matrices of the columns to work on, beside the other columns, which are kept as they are.
"""

from powerkern._input.tables.files import check_output, is_longer, read, stream, write
from powerkern._input.tables.table import (
    NAMES_ROWS,
    BadInput,
    Block,
    Choice,
    Layout,
    Table,
    TextFormat,
    check_folder,
    sentences,
)

__all__ = [
    "NAMES_ROWS",
    "BadInput",
    "Block",
    "Choice",
    "Layout",
    "Table",
    "TextFormat",
    "check_folder",
    "check_output",
    "is_longer",
    "read",
    "sentences",
    "stream",
    "write",
]
