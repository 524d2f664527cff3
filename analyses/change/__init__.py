"""What a model answers when something inside is changed."""
