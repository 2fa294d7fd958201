"""`auditor claim --solve-for`: the third of noise, sampling rate and steps for a wanted promise, and what it refuses."""

import pytest
from command_line import run


@pytest.mark.parametrize(
    ("wish", "name"),
    [
        ("--target advantage:0.05 --sampling-rate 0.01 --steps 1000", "noise multiplier"),
        ("--target tpr:0.01,at_fpr=0.001 --noise-multiplier 1 --steps 500", "sampling rate"),
        ("--target epsilon:2,delta=1e-5 --noise-multiplier 1 --sampling-rate 0.01", "steps"),
        ("--target success:0.92,prior=0.1 --sampling-rate 0.01 --steps 1000", "noise multiplier"),
    ],
)
def test_each_parameter_can_be_computed(capsys, wish, name):
    """Each of the three parameters can be computed, and the sentence states the promise and the method."""
    assert run("claim", "--solve-for", name.replace(" ", "-"), *wish.split()) == 0
    text = capsys.readouterr().out
    assert name in text.lower().split("keep")[0]
    assert "proven" in text
