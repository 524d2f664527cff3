"""Interventions, written in one format in code, on the command line, on the page and in notebooks.

An edit specifies a place, loops, positions and an action. A list of edits is plain data that
converts to JSON and back, and it is stored with every result.

    [{"do": "zero", "place": "blocks.0.hook_attn_out", "loops": [1]},
     {"do": "realign", "alpha": 0.5, "scale": "rms"}]

Loops are numbered from 0. Positions are a list of numbers, `bridge` (where the batch's bridges are
read) or `answer` (where its answer is read). An edit without positions acts at all of them.

In models that think, `loops` has two meanings. At places of the recurrence, loops are thoughts, and
there are no positions. At all other places, loops are passes: pass 0 comes before a row's first
thought, and pass j begins with thought j − 1. Generated tokens are edited only if the edit has no
positions.

How an edit gets from JSON to its effect:

    parse_edits(data)              each item is validated by its class in `EDITS`
    Watch(edits).hooks(model, …)   calls `edit.hooks(model, batch)` of each edit
    PlaceEdit.hooks                `acting` turns loops and positions into a hook on the place:
                                   `at_loop`, or a `SequenceHook` in a model that thinks
    edit.change(tensor, firing)    computes the new values when the place fires
    Watch.finish()                 reports rows, loops and positions touched; none is an error
"""

from collections.abc import Sequence
from typing import Any

from workbench.capabilities import CanRecord
from workbench.edits.base import CompiledHooks, Edit
from workbench.edits.between import Realign, Skip
from workbench.edits.mix import Mix
from workbench.edits.order import Repeat, Swap
from workbench.edits.patch import Patch
from workbench.edits.touch import Watch
from workbench.edits.values import Add, Clamp, Freeze, Mean, Scale, Zero
from workbench.registries import EDITS
from workbench.settings.config import ConfigError, nearest, parse
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
    """Parse edits from plain data.

    Raises:
        ConfigError: An edit is unknown, or one of its fields is unknown, missing or invalid.
    """
    if not isinstance(data, list):
        raise ConfigError("edits are a list, each with its 'do' and 'place'")
    return [_parsed(number, item) for number, item in enumerate(data)]


def _parsed(number: int, item: Any) -> Edit:
    """Parse the edit with index `number` in its list."""
    do = item.get("do") if isinstance(item, dict) else None
    if do not in EDITS:
        raise ConfigError(f"edit {number} does {do!r}; {nearest(str(do), EDITS)}")
    return parse(EDITS[str(do)], item, f"edit {number} ({do})")


def edit_hooks(edits: Sequence[Edit], model: CanRecord, batch: Batch) -> CompiledHooks:
    """Return TransformerLens hooks that apply edits, in order, to one batch.

    The edits are checked when the hooks are removed. An edit that names a loop or position that no
    row has, or that touched nothing, then raises ConfigError. `Watch` checks over several batches.
    """
    return Watch(edits).hooks(model, batch, judged=True)


def patched_from(edits: Sequence[Edit]) -> dict[str, str]:
    """Return the names of the runs that edits patch from, with the hashes of their weights.

    Raises:
        FileError: A run does not exist or has no weights.
    """
    from workbench.runs import load_run

    named = {edit.run for edit in edits if isinstance(edit, Patch) and edit.run is not None}
    return {name: load_run(name).weights_hash() for name in sorted(named)}


def to_plain(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Convert edits to data for JSON, without fields that are None by default."""
    return [
        {
            name: value
            for name, value in edit.model_dump().items()
            if value is not None or type(edit).model_fields[name].default is not None
        }
        for edit in edits
    ]
