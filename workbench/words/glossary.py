"""The words that this project coined, defined once: for the page, the command line and the docs.

All other words are TransformerLens's, PyTorch's or the papers'.
"""

GLOSSARY = {
    "loop": (
        "One pass through the looped blocks. Numbered from 0 in code, edits and JSON, and from 1 "
        "in labels (“after loop 1”)."
    ),
    "thought": (
        "A hidden state of the last layer that is fed back as the input at the next position, in "
        "place of a token."
    ),
    "place": (
        "The name of a hook point, such as `blocks.0.attn.hook_pattern`. The loops that a place "
        "is recorded in are one axis of the cache."
    ),
}
