"""AGCLR (arXiv 2606.07720): CoCoNuT with a gated memory, the concept stream."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from workbench.models.thoughts.thought import ThoughtConfig, ThoughtModel
from workbench.recurrence.concept_stream import BIASES, ConceptStream, Gate
from workbench.recurrence.feedback import ThoughtRecurrence
from workbench.registries import FAMILIES


class AgclrConfig(ThoughtConfig):
    """Config of an AGCLR model."""

    # Initial biases of the read, forget and write gates: published for a data set, or three numbers
    biases: (
        Literal["gsm8k", "hotpotqa", "prosqa"]
        | Annotated[list[float], Field(min_length=3, max_length=3)]
    ) = "prosqa"
    # With `reset`, every thought starts with an empty stream: the same parameters, no memory
    memory: Literal["kept", "reset"] = "kept"
    # Gates knocked out as in the paper: weight 0 and bias −10, both frozen in training
    shut: list[Gate] = []

    @property
    def start_biases(self) -> Sequence[float]:
        """The three initial biases that `biases` specifies."""
        return BIASES[self.biases] if isinstance(self.biases, str) else self.biases


@FAMILIES.register("agclr")
class Agclr(ThoughtModel):
    """A CoCoNuT model that mixes each thought with a memory of the earlier thoughts."""

    Config = AgclrConfig
    cfg: AgclrConfig

    def make_recurrence(self) -> ThoughtRecurrence:
        return ConceptStream(
            self.cfg.d_model, self.cfg.start_biases, self.cfg.memory, self.cfg.shut
        )
