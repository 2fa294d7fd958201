"""Servers that are stopped in the end, and a model whose losses are known."""

import socket

import numpy as np
import pytest
from collectors.server import Server


@pytest.fixture
def serve(require_extra):
    """Start servers, which are stopped in the end."""
    require_extra("http")
    started = []

    def start(answer, **kwargs):
        started.append(Server(answer, **kwargs))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def closed_port():
    """An address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}"


class Linear:
    """Three classes, four features, logits linear in them."""

    def __init__(self, seed=5):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=(4, 3))
        self.x = rng.normal(size=(60, 4))
        logits = self.x @ self.weights
        self.y = np.array([rng.choice(3, p=p) for p in self.probabilities(self.x)])
        own = logits[np.arange(60), self.y]
        # The loss, by its definition: log of the sum of the others' exponentials, less the own logit.
        others = [np.delete(row, label) for row, label in zip(logits, self.y, strict=True)]
        self.losses = np.array([np.log(np.exp(row).sum()) for row in others]) - own

    def probabilities(self, x):
        """The softmax of the logits, shape (n, 3)."""
        logits = np.asarray(x, dtype=float).reshape(-1, 4) @ self.weights
        exponentials = np.exp(logits)
        return exponentials / exponentials.sum(axis=1, keepdims=True)

    @property
    def groups(self):
        """The pairs (X, y) of members and non-members."""
        return {"members": (self.x[:35], self.y[:35]), "nonmembers": (self.x[35:], self.y[35:])}


@pytest.fixture(scope="session")
def linear():
    """The model."""
    return Linear()
