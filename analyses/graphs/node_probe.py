"""Linear probes of node states, one for each loop."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.tasks.batch import GraphBatch

STRENGTH = 0.1  # inverse of the penalty on the weights; states are standardised


def real_nodes(batch: GraphBatch) -> Bool[Tensor, "batch node"]:
    """Return a mask of the nodes to predict: all but the source and padding."""
    return (~batch.is_pad & (batch.distance != 0)).cpu()


@dataclass(frozen=True, eq=False)
class NodeProbe:
    """Logistic regressions that predict yes or no from a node's state, one for each loop."""

    weight: Float[Tensor, "loop d_model"]
    bias: Float[Tensor, " loop"]

    @classmethod
    def fit(
        cls,
        states: Float[Tensor, "loop batch node d_model"],
        batch: GraphBatch,
        wanted: Bool[Tensor, "loop batch node"],
        shuffled: bool = False,
    ) -> "NodeProbe":
        """Fit on the nodes of some graphs; `shuffled` shuffles the labels, for the control."""
        from sklearn.linear_model import LogisticRegression

        nodes = real_nodes(batch)
        rng = np.random.default_rng(0)
        weights, biases = [], []
        for loop, state in enumerate(states):
            x = state[nodes].double()
            y = wanted[loop][nodes].numpy()
            y = rng.permutation(y) if shuffled else y
            middle, size = x.mean(0), x.std(0).clamp(min=1e-6)
            if y.all() or not y.any():  # all labels are the same
                weights.append(torch.zeros_like(middle))
                biases.append(torch.tensor(1.0 if y.all() else -1.0).double())
                continue
            line = LogisticRegression(C=STRENGTH, solver="newton-cholesky", max_iter=200)
            line.fit(((x - middle) / size).numpy(), y)
            weight = torch.from_numpy(line.coef_[0]) / size
            weights.append(weight)
            biases.append(torch.from_numpy(line.intercept_)[0] - weight @ middle)
        return cls(torch.stack(weights).float(), torch.stack(biases).float())

    def predict(
        self, states: Float[Tensor, "loop batch node d_model"]
    ) -> Bool[Tensor, "loop batch node"]:
        """Predict yes or no for each node."""
        logits = torch.einsum("lbnd,ld->lbn", states, self.weight)
        return logits + self.bias[:, None, None] > 0
