"""How far rotary positions turn, with and without scaling."""

import math

import pytest
import torch

from workbench.components.rotary import Rotary, frequencies
from workbench.settings.config import RotaryScaling


def test_pairs_turn_by_falling_powers_of_the_base():
    assert frequencies(8, 10_000.0).tolist() == pytest.approx([1.0, 0.1, 0.01, 0.001])


def test_scaling_keeps_fast_pairs_slows_slow_ones_and_mixes_between():
    # Of 20π positions the pairs turn 10, 1, .1 and .01 times; half a turn to 1.5 is between
    scaling = RotaryScaling(
        factor=4.0, low_freq_factor=0.5, high_freq_factor=1.5, original_ctx_len=63
    )
    turns = [63 * frequency / (2 * math.pi) for frequency in (1.0, 0.1, 0.01, 0.001)]
    kept = turns[1] - 0.5  # of 1.5 − .5
    wanted = [1.0, 0.1 * (kept + (1 - kept) / 4), 0.01 / 4, 0.001 / 4]
    assert frequencies(8, 10_000.0, scaling).tolist() == pytest.approx(wanted)


def test_layers_of_one_shape_share_their_tables(cfg):
    first, second = Rotary(cfg()), Rotary(cfg())
    assert not first.state_dict() and not list(first.buffers())
    positions = torch.tensor([[0, 3]])
    assert torch.equal(first(positions).cos, second(positions).cos)


def test_angles_come_in_the_precision_of_the_states(cfg):
    assert Rotary(cfg())(torch.tensor([[0, 3]]), torch.bfloat16).sin.dtype == torch.bfloat16
