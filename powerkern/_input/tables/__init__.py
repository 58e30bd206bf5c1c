"""Tables in files: CSV (also .tsv, also compressed), Parquet and .npy, in blocks of rows, for the command line."""
