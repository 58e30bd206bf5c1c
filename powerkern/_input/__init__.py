"""Reading and checking of all input: arrays, data frames, batches, files, arguments."""
