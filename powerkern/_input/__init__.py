"""Reading and validation of all input: arrays, data frames, batches, files and arguments."""
