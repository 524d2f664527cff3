"""Interventions: one grammar for code, command line, page and notebook.

An edit names a place, loops, positions and what is done there. A list of edits is plain data: it
goes to JSON and back, and is kept with every result.

    [{"do": "zero", "place": "blocks.0.hook_attn_out", "loops": [1]},
     {"do": "realign", "alpha": 0.5, "scale": "rms"}]

Loops are numbered from 0. Positions are numbers, `bridge` (where the batch's bridges are read) or
`answer` (where its answer is read); left out, an edit acts at all of them.

In models that think, loops are thoughts at the places of the recurrence, which have no positions.
At the places of the sequence they are passes: 0 comes before a row's first thought, j begins with
thought j − 1. Tokens that a generation appends are edited where an edit names no positions.
"""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from workbench.capabilities import CanRecord
from workbench.edits.base import CompiledHooks, Edit
from workbench.edits.between import Realign, Skip
from workbench.edits.mix import Mix
from workbench.edits.order import Repeat, Swap
from workbench.edits.patch import Patch
from workbench.edits.touch import Watch
from workbench.edits.values import Add, Clamp, Freeze, Mean, Scale, Zero
from workbench.registries import EDITS
from workbench.settings.config import ConfigError, nearest
from workbench.tasks.batch import Batch

__all__ = [
    "EDITS",
    "Add",
    "Clamp",
    "Edit",
    "Freeze",
    "Mean",
    "Mix",
    "Patch",
    "Realign",
    "Repeat",
    "Scale",
    "Skip",
    "Swap",
    "Watch",
    "Zero",
    "edit_hooks",
    "parse_edits",
    "patched_from",
    "to_plain",
]


def parse_edits(data: Any) -> list[Edit]:
    """Edits from plain data.

    Raises:
        ConfigError: An edit is unknown, or a field of it is unknown, missing or wrong.
    """
    if not isinstance(data, list):
        raise ConfigError("edits are a list, each with its 'do' and 'place'")
    return [_parsed(number, item) for number, item in enumerate(data)]


def _parsed(number: int, item: Any) -> Edit:
    """Edit `number` of a list."""
    do = item.get("do") if isinstance(item, dict) else None
    if do not in EDITS:
        raise ConfigError(f"edit {number} does {do!r}; {nearest(str(do), EDITS)}")
    kind = EDITS[str(do)]
    for field in item:
        if field not in kind.model_fields:
            near = nearest(str(field), kind.model_fields)
            raise ConfigError(f"edit {number} ({do}) has no field {field!r}; {near}")
    try:
        return kind.model_validate(item)
    except ValidationError as error:
        problem = error.errors()[0]
        path = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        parts = [f"edit {number}", path, message]
        raise ConfigError(": ".join(part for part in parts if part)) from None


def edit_hooks(edits: Sequence[Edit], model: CanRecord, batch: Batch) -> CompiledHooks:
    """TransformerLens hooks that carry out edits, in order, on one batch.

    They are judged when they are taken away: an edit that asked for a loop or position that no row
    has, or that touched nothing, raises ConfigError then. `Watch` does so over several batches.
    """
    return Watch(edits).hooks(model, batch, judged=True)


def patched_from(edits: Sequence[Edit]) -> dict[str, str]:
    """The runs that edits patch from, each with the hash of its weights.

    Raises:
        FileError: There is no such run, or it has no weights.
    """
    from workbench.runs import load_run

    named = {edit.run for edit in edits if isinstance(edit, Patch) and edit.run is not None}
    return {name: load_run(name).weights_hash() for name in sorted(named)}


def to_plain(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Edits as data for JSON, without what is None by default."""
    return [
        {
            name: value
            for name, value in edit.model_dump().items()
            if value is not None or type(edit).model_fields[name].default is not None
        }
        for edit in edits
    ]
