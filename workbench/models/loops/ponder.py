"""PonderLM, built from DiscoLoop's parts: only the decoded token goes to the next loop."""

from pydantic import model_validator

from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Recurrence
from workbench.recurrence.discrete import Reembed
from workbench.recurrence.phi import Decoding, Phi
from workbench.registries import FAMILIES
from workbench.settings.config import LoopedConfig


class PhiConfig(LoopedConfig):
    """Config of a looped model that decodes its state between loops."""

    tau: float = 1.0  # temperature of Φ's softmax
    top_k: int | None = None  # Φ over the likeliest tokens only, for large vocabularies
    decoding: Decoding = "soft"

    @model_validator(mode="after")
    def _check_phi(self) -> "PhiConfig":
        if self.tau <= 0:
            raise ValueError(f"tau={self.tau} must be above 0; decoding='hard' is its limit")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k} must be at least 1")
        return self

    def make_phi(self) -> Phi:
        """Build the Φ that these fields specify."""
        return Phi(self.decoding, self.tau, self.top_k)


class PonderConfig(PhiConfig):
    """Config of PonderLM: each loop's decoded embedding is the next loop's input."""

    keep_input: bool = True  # add the token embedding to Φ; False passes on Φ only


@FAMILIES.register("ponder")
class Ponder(DepthModel):
    """A looped model whose loops start from the token embedding plus Φ of the previous loop."""

    Config = PonderConfig
    cfg: PonderConfig

    def make_recurrence(self) -> Recurrence:
        return Reembed(self.cfg.make_phi(), self.cfg.keep_input)
