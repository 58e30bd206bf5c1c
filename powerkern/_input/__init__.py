"""Reads and checks input once: arrays, data frames, batches, files, arguments."""
