"""AGCLR (arXiv 2606.07720): CoCoNuT with a gated concept stream."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from workbench.models.thoughts.thought import ThoughtConfig, ThoughtModel
from workbench.recurrence.concept_stream import BIASES, ConceptStream, Gate
from workbench.recurrence.feedback import ThoughtRecurrence
from workbench.registries import FAMILIES


class AgclrConfig(ThoughtConfig):
    """Shape of an AGCLR model."""

    # Biases of read, forget and write gate at the start: a data set's, as published, or three
    biases: (
        Literal["gsm8k", "hotpotqa", "prosqa"]
        | Annotated[list[float], Field(min_length=3, max_length=3)]
    ) = "prosqa"
    # With `reset` every thought begins with an empty stream: as many parameters, no memory
    memory: Literal["kept", "reset"] = "kept"
    # Gates that are removed as published: weight 0 and bias −10, fixed while all else is trained
    shut: list[Gate] = []

    @property
    def start_biases(self) -> Sequence[float]:
        """The three numbers that `biases` stands for."""
        return BIASES[self.biases] if isinstance(self.biases, str) else self.biases


@FAMILIES.register("agclr")
class Agclr(ThoughtModel):
    """CoCoNuT whose thoughts are mixed with a memory of the thoughts before."""

    Config = AgclrConfig
    cfg: AgclrConfig

    def make_recurrence(self) -> ThoughtRecurrence:
        return ConceptStream(
            self.cfg.d_model, self.cfg.start_biases, self.cfg.memory, self.cfg.shut
        )
