"""Labels of loops, thoughts, difficulties and positions in figures and tables."""

from collections.abc import Sequence

SEEN = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥"}


def loop_label(loop: int) -> str:
    """Return the label of a loop numbered from 0, such as `after loop 1`; −1 is the input."""
    return "input" if loop < 0 else f"after loop {loop + 1}"


def loop_labels(n_loops: int, with_input: bool = False) -> list[str]:
    """Return the labels of all loops in order, optionally with the input before them."""
    return [loop_label(loop) for loop in range(-1 if with_input else 0, n_loops)]


def thought_label(thought: int) -> str:
    """Return the label of a thought numbered from 0, such as `thought 1`."""
    return f"thought {thought + 1}"


def level_label(level: int, unit: str) -> str:
    """Return a difficulty with its unit: `12 hops`, `1 hop`, `depth 8`."""
    if not unit.endswith("s"):
        return f"{unit} {level}"
    return f"{level} {unit.removesuffix('s') if level == 1 else unit}"


def literal(text: str) -> str:
    """Escape a text so that plotly shows it literally, including tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def visible(word: str) -> str:
    """Make the whitespace at the ends of a token's text visible: `␣the`, `⏎`."""
    inner = word.strip()
    if not inner:
        return "".join(SEEN.get(c, c) for c in word) or "∅"
    start = word.index(inner)
    before, after = word[:start], word[start + len(inner) :]
    shown = ("".join(SEEN.get(c, c) for c in side) for side in (before, after))
    return inner.join(shown)


def position_labels(words: Sequence[str]) -> list[str]:
    """Return labels of position and word, so that a repeated word keeps separate columns."""
    return [f"{position} {word}" for position, word in enumerate(words)]
