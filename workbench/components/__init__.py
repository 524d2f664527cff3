"""The components of a transformer, with TransformerLens's hook names."""
