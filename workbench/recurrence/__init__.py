"""Recurrences: one small class for each way to pass a state to the next loop or thought."""
