"""Forward pass over a batch with n thoughts, run in n + 1 passes."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from workbench.components.attention import Context, KeyValues
from workbench.hooks.passes import Passes

if TYPE_CHECKING:
    from workbench.models.thoughts.thought import ThoughtModel


class ThoughtsSoFar:
    """State of a running forward pass: keys and values so far, and each row's last thought."""

    def __init__(self, model: "ThoughtModel", tokens: Tensor, passes: Passes) -> None:
        self.model = model
        self.tokens = tokens
        self.passes = passes
        self.earlier = KeyValues()
        self.context: Context | None = None  # of the current pass
        self.keys = passes.positions.new_empty(len(tokens), 0)  # positions; −1 is filling
        nothing = model.W_E.new_zeros(len(tokens), model.cfg.d_model)
        self.state, self.stream = nothing, nothing  # inputs of each row's last thought
        self.thought, self.kept = nothing, nothing  # each row's last thought and new stream

    def run_pass(self, number: int) -> Float[Tensor, "batch width d_model"]:
        """Run one pass and make the thought at its end; return the last layer's normed states."""
        passes = self.passes
        columns = passes.columns[number]
        self.model.clock.columns = columns
        states = self.run(self.embed(number), passes.gather(passes.positions, number), columns >= 0)
        if number < passes.n:
            rows = torch.arange(len(states), device=states.device)
            self.think(number, states[rows, passes.ends(number).clamp(min=0)])
        return states

    def run(
        self,
        words: Float[Tensor, "batch width d_model"],
        positions: Int[Tensor, "batch width"],
        real: Bool[Tensor, "batch width"],
    ) -> Float[Tensor, "batch width d_model"]:
        """Run the next positions and return the last layer's states, after the final norm.

        Args:
            words: Input embeddings of the positions.
            positions: Position numbers, from 0.
            real: False for filling.
        """
        is_first = self.keys.shape[1] == 0
        self.keys = torch.cat((self.keys, torch.where(real, positions, -1)), dim=1)
        earlier = self.keys[:, None, None, :] <= positions[:, None, :, None]
        allowed = earlier & (self.keys >= 0)[:, None, None, :]
        # Filling attends to everything, so that its states stay finite; nothing attends to it
        allowed = allowed | ~real[:, None, :, None]
        merged = {} if self.context is None else self.context.merged
        keys: Tensor | None = self.keys
        if is_first:  # all rows start at position 0, so that one row of positions is enough
            positions, keys = torch.arange(words.shape[1], device=words.device)[None], None
        self.context = Context(positions, allowed, merged, earlier=self.earlier, key_positions=keys)
        return self.model.states(words, self.context)

    def embed(self, number: int) -> Float[Tensor, "batch width d_model"]:
        """Return the input embeddings of a pass: its tokens, with the last thought in its place."""
        words = self.model.embed(self.passes.gather(self.tokens, number))
        if number == 0:
            return words
        begins = self.passes.columns[number][:, 0] >= 0
        begins = begins & (self.passes.n_thoughts > 0)
        first = torch.where(begins[:, None], self.thought.to(words.dtype), words[:, 0])
        return torch.cat((first[:, None], words[:, 1:]), dim=1)

    def think(self, number: int, state: Float[Tensor, "batch d_model"]) -> None:
        """Make thought `number` in the rows that have one; other rows keep their last thought."""
        active = self.passes.valid[number][:, None]
        self.state = torch.where(active, state, self.state)
        self.stream = torch.where(active, self.kept, self.stream)
        thought, kept = self.model.recurrence(self.state, self.stream)
        self.thought = torch.where(active, thought, self.thought)
        self.kept = torch.where(active, kept, self.kept)
