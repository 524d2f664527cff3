"""A training step against the faster of two peers, at equal work."""

from collections.abc import Iterator

from benchmarks.peers import Shape, training_steps
from benchmarks.row import Row, ratio_row
from benchmarks.timing import interleave

HEADS = {64: 2, 128: 4, 512: 8}  # width: number of heads
PEERS = ["x-transformers", "transformer-lens"]


def measure() -> Iterator[Row]:
    """Measure one row for each width and kind of batch."""
    for d_model, n_heads in HEADS.items():
        for case, shape in (
            ("512 questions of 3 tokens", Shape(d_model, n_heads, 512, 3, answer_alone=True)),
            ("32 texts of 64 tokens", Shape(d_model, n_heads, 32, 64, answer_alone=False)),
        ):
            seconds = interleave(dict(training_steps(shape)))
            name = f"width {d_model}, {case}"
            yield ratio_row("training step / faster peer", name, seconds, "ours", PEERS, target=1.0)
