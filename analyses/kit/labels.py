"""How loops and positions are called wherever people read them."""

from collections.abc import Sequence

SEEN = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥"}


def loop_label(loop: int) -> str:
    """Code numbers loops from 0; people read `after loop 1`; −1 is the input of the first."""
    return "input" if loop < 0 else f"after loop {loop + 1}"


def loop_labels(n_loops: int, with_input: bool = False) -> list[str]:
    """Labels of all loops in order, the input before them if wanted."""
    return [loop_label(loop) for loop in range(-1 if with_input else 0, n_loops)]


def thought_label(thought: int) -> str:
    """Code numbers thoughts from 0; people read `thought 1`."""
    return f"thought {thought + 1}"


def level_label(level: int, unit: str) -> str:
    """A difficulty with its unit: `12 hops`, `1 hop`, `depth 8`."""
    if not unit.endswith("s"):
        return f"{unit} {level}"
    return f"{level} {unit.removesuffix('s') if level == 1 else unit}"


def literal(text: str) -> str:
    """A text as plotly shows it literally, tags included."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def visible(word: str) -> str:
    """A token's text with the blanks and line ends at its sides to be seen: `␣the`, `⏎`."""
    inner = word.strip()
    if not inner:
        return "".join(SEEN.get(c, c) for c in word) or "∅"
    start = word.index(inner)
    before, after = word[:start], word[start + len(inner) :]
    shown = ("".join(SEEN.get(c, c) for c in side) for side in (before, after))
    return inner.join(shown)


def position_labels(words: Sequence[str]) -> list[str]:
    """Position and word, so that a word that comes twice keeps two columns."""
    return [f"{position} {word}" for position, word in enumerate(words)]
