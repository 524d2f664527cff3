"""The parts of a transformer, hooked under TransformerLens's names."""
