"""Vocabularies of whole words, and pretrained tokenizers."""
