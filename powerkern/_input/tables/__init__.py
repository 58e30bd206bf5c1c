"""Tables in files for the command line: text such as CSV, perhaps compressed, Parquet and .npy, in blocks of rows."""
