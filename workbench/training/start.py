"""Weights to begin with: those of another run."""

from workbench.models.base import LatentModel
from workbench.runs import check_fits, load_run


def start_from(model: LatentModel, name: str) -> None:
    """Take over a run's weights.

    A recurrence that the run lacks keeps its fresh ones, and so does what is not trained.

    Raises:
        FileError: There is no such run, or its weights do not fit.
    """
    run = load_run(name)
    weights = run.model.state_dict()
    own = model.state_dict()
    new = {n: t for n, t in own.items() if n.startswith("recurrence.") and n not in weights}
    weights = {n: t for n, t in weights.items() if n in own or not n.startswith("recurrence.")}
    check_fits(model, {n: t.shape for n, t in (weights | new).items()}, run.path)
    fixed = {n: own[n] for n, p in model.named_parameters() if not p.requires_grad}
    model.load_state_dict(weights | new | fixed)
