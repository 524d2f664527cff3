"""Words and tokens: vocabularies of whole words, and tokenizers."""
