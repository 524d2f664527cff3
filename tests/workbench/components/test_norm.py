import pytest
import torch

from workbench.components.norm import norm, rms_normalize

X = torch.tensor([[[1.0, -3.0, 5.0, 1.0]]])  # mean 1, mean square 9, variance 8
GAIN, BIAS = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.5, 0.0, 0.0, -0.5])


@pytest.fixture
def make(cfg):
    def make(kind):
        made = norm(cfg(d_model=4, normalization_type=kind, eps=1e-9))
        made.w.data.copy_(GAIN)
        if kind == "LN":
            made.b.data.copy_(BIAS)
        return made

    return make


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize(
    ("kind", "scale", "normalized"),
    [("RMS", 3.0, X / 3), ("LN", 8**0.5, (X - 1) / 8**0.5)],
)
def test_norms_by_hand_heard_or_not(make, kind, scale, normalized, heard):
    made, seen = make(kind), {}
    if heard:
        made.hook_scale.add_hook(lambda tensor, hook: seen.update(scale=tensor))
        made.hook_normalized.add_hook(lambda tensor, hook: seen.update(normalized=tensor))
    wanted = normalized * GAIN + (BIAS if kind == "LN" else 0)
    torch.testing.assert_close(made(X), wanted)
    if heard:
        torch.testing.assert_close(seen["scale"], torch.full((1, 1, 1), scale))
        torch.testing.assert_close(seen["normalized"], normalized)


def test_an_edited_scale_changes_what_comes_out(make):
    made = make("RMS")
    made.hook_scale.add_hook(lambda tensor, hook: tensor * 2)
    torch.testing.assert_close(made(X), X / 6 * GAIN)


def test_without_a_gain_every_vector_gets_the_same_norm():
    many = torch.randn(5, 3, 16) * torch.tensor([0.1, 1.0, 100.0])[:, None]
    norms = rms_normalize(many).norm(dim=-1)
    torch.testing.assert_close(norms, torch.full((5, 3), 4.0), atol=1e-2, rtol=0)


def test_nothing_stays_nothing():
    assert not rms_normalize(torch.zeros(1, 1, 4)).any()
