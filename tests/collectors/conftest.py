"""The frameworks, where they are installed."""

import pytest


@pytest.fixture
def torch(require_extra):
    """PyTorch."""
    require_extra("torch")
    import torch

    return torch


@pytest.fixture
def keras(require_extra):
    """Keras."""
    require_extra("tensorflow")
    import keras

    return keras
