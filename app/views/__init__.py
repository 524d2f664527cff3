"""One view a question."""
