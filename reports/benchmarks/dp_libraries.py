"""Libraries of DP-SGD under a step audit: correct trainings, and trainings with a planted bug, each as its tutorials train.

From the root of this repository, with the libraries that are to be tested (any of them may be missing):

    pip install . torch opacus
    OMP_NUM_THREADS=1 python reports/benchmarks/dp_libraries.py

JAX Privacy needs an environment of its own. For each library and bug: in how many of the trainings the claim is refuted, after
how many steps (median and largest), and, for correct trainings of 400 steps, how many are refuted and how many clipping norms of
noise are certified. Last the processor time of a step with the audit over that without, at 1 million parameters and batches of
256. ``--seeds`` sets the trainings of each bug (20), ``--correct`` the correct ones (67 of each library). The numbers of one run
are in ``dp_libraries.md``.
"""

import argparse
import logging
import math
import statistics
import time
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import auditor

RECORDS, BATCH, FEATURES, HIDDEN, CLASSES = 4000, 64, 100, 200, 10
STEPS = 400
BUGS = {
    "noise x0.5": 100,
    "noise x0.8": 250,
    "noise x0.9": 500,
    "noise scaled by half of the clipping norm": 100,
    "a bias of 10 numbers without noise": 300,
    "clipping off": 50,
    "clipping of the batch's mean": 300,
    "the same noise every step": 300,
    "noise of one micro-batch in two": 300,
    "shuffled batches": RECORDS // BATCH,
}
SCALED = {
    "noise x0.5": 0.5,
    "noise x0.8": 0.8,
    "noise x0.9": 0.9,
    "noise of one micro-batch in two": math.sqrt(0.5),
}
Training = Iterator[Any]  # yields the watch after each step


def data(seed: int, size: int = RECORDS, features: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Records with labels that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, features)).astype(np.float32)
    return x, (x[:, :CLASSES].argmax(axis=1)).astype(np.int64)


# --- Opacus ---


def _noise_of_half(optimizer: Any) -> None:
    optimizer.noise_multiplier = 0.5


def _no_noise_in_the_last(optimizer: Any) -> None:
    add = optimizer.add_noise

    def add_noise() -> None:
        add()
        last = optimizer.params[-1]
        last.grad = last.summed_grad.view_as(last).clone()

    optimizer.add_noise = add_noise


def _the_same_noise(optimizer: Any) -> None:
    import torch

    add = optimizer.add_noise

    def add_noise() -> None:
        state = torch.random.get_rng_state()
        torch.manual_seed(3)
        add()
        torch.random.set_rng_state(state)

    optimizer.add_noise = add_noise


def _no_clipping(optimizer: Any) -> None:
    def clip(self: Any) -> None:
        for one in self.params:
            total = self._get_flat_grad_sample(one).sum(0)
            one.summed_grad = total if one.summed_grad is None else one.summed_grad + total

    optimizer.clip_and_accumulate = types.MethodType(clip, optimizer)


PLANTED = {
    "noise scaled by half of the clipping norm": _noise_of_half,
    "a bias of 10 numbers without noise": _no_noise_in_the_last,
    "the same noise every step": _the_same_noise,
    "clipping off": _no_clipping,
}


def opacus(bug: str | None, seed: int) -> Training | None:
    """A training by Opacus; None where the bug cannot be planted there."""
    import torch
    from opacus import PrivacyEngine

    if bug == "clipping of the batch's mean":
        return None
    torch.manual_seed(seed)
    x, y = map(torch.from_numpy, data(seed))
    network = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)
    )
    network, optimizer, loader = PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=SCALED.get(bug or "", 1.0),
        max_grad_norm=1.0,
        poisson_sampling=bug != "shuffled batches",
    )
    if bug in PLANTED:
        PLANTED[bug](optimizer)
    claim = auditor.DPSGD(1.0, 1 / len(loader), 10_000)
    watch = auditor.training.opacus(optimizer, claim=claim, loader=loader, model=network, seed=seed)

    def steps() -> Training:
        while True:
            for features, labels in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(network(features), labels).backward()
                optimizer.step()
                yield watch

    return steps()


def opacus_cost(*, watched: bool) -> Callable[[], None]:
    """A step at 1 million parameters."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    x, y = map(torch.from_numpy, data(0, 256, 784))
    network = torch.nn.Sequential(
        torch.nn.Linear(784, 1000),
        torch.nn.ReLU(),
        torch.nn.Linear(1000, 200),
        torch.nn.ReLU(),
        torch.nn.Linear(200, 10),
    )
    network, optimizer, _ = PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=256),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    if watched:
        auditor.training.opacus(optimizer, claim=1.0, seed=0)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

    return step


# --- TensorFlow Privacy ---


def tensorflow(bug: str | None, seed: int) -> Training | None:
    """A training by TensorFlow Privacy: a DP model, whose sampler nobody claims; None where the bug cannot be planted there."""
    import tensorflow as tf
    from tensorflow_privacy.privacy.keras_models.dp_keras_model import DPSequential

    if bug == "shuffled batches":
        return None
    tf.keras.utils.set_random_seed(seed)

    class Model(DPSequential):
        """A DP model with its clipping or its noise changed."""

        def _process_per_example_grads(self, grads: Any) -> Any:
            off = bug in ("clipping off", "clipping of the batch's mean")
            return grads if off else super()._process_per_example_grads(grads)

        def _reduce_per_example_grads(self, stacked: Any) -> Any:
            rows, mean = tf.cast(tf.shape(stacked)[0], tf.float32), tf.reduce_mean(stacked, axis=0)
            if bug == "clipping of the batch's mean":
                return tf.clip_by_norm(mean, 1.0) + tf.random.normal(mean.shape) / rows
            if bug == "a bias of 10 numbers without noise" and stacked.shape[1:] == (10,):
                return mean
            if bug == "the same noise every step":
                return mean + tf.random.stateless_normal(mean.shape, (1, 2)) / rows
            return super()._reduce_per_example_grads(stacked)

    noise = 0.5 if bug == "noise scaled by half of the clipping norm" else SCALED.get(bug or "", 1.0)
    layers = [tf.keras.layers.Dense(HIDDEN, activation="relu"), tf.keras.layers.Dense(CLASSES)]
    model = Model(1.0, noise, layers=layers)
    model.build((None, FEATURES))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    model.compile(tf.keras.optimizers.SGD(0.1), loss)
    watch = auditor.training.tensorflow_privacy(model, claim=1.0, seed=seed)
    return _batches(seed, model.train_on_batch, watch)


def _batches(seed: int, step: Callable[[np.ndarray, np.ndarray], Any], watch: Any) -> Training:
    """Yield the watch after each step on the next batch."""
    x, y = data(seed)
    while True:
        for start in range(0, RECORDS - BATCH, BATCH):
            step(x[start : start + BATCH], y[start : start + BATCH])
            yield watch


def tensorflow_cost(*, watched: bool) -> Callable[[], None]:
    """A step at 1 million parameters."""
    import tensorflow as tf
    from tensorflow_privacy.privacy.keras_models.dp_keras_model import DPSequential

    x, y = data(0, 256, 784)
    layers = [tf.keras.layers.Dense(size, activation="relu") for size in (1000, 200)]
    model = DPSequential(1.0, 1.0, layers=[*layers, tf.keras.layers.Dense(10)])
    model.build((None, 784))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    model.compile(tf.keras.optimizers.SGD(0.1), loss)
    if watched:
        auditor.training.tensorflow_privacy(model, claim=1.0, seed=0)

    def step() -> None:
        model.train_on_batch(x, y)

    return step


# --- JAX Privacy ---


def _of_the_mean(original: Any, fun: Any, argnums: Any = 0, *, l2_clip_norm: float, **options: Any) -> Any:
    """JAX Privacy's clipped gradient function that clips the mean in place of each."""
    import jax
    from jax_privacy import clipping

    plain = original(fun, argnums, l2_clip_norm=1e9, **options)

    def wrong(*args: Any) -> Any:
        rows = len(args[np.atleast_1d(options.get("batch_argnums", 1))[0]])
        clipped, _ = clipping.clip_pytree(
            jax.tree.map(lambda total: total / rows, plain.fun(*args)), l2_clip_norm
        )
        return jax.tree.map(lambda each: rows * each, clipped)

    return clipping.BoundedSensitivityCallable(wrong, l2_clip_norm, has_aux=False)


def jax(bug: str | None, seed: int) -> Training | None:
    """A training by JAX Privacy, without a sampler; None where the bug cannot be planted there."""
    import jax
    import jax.numpy as jnp
    import jax_privacy

    if bug == "shuffled batches":
        return None
    rng = np.random.default_rng(seed)
    values = {
        "bias": jnp.zeros(HIDDEN),
        "first": jnp.asarray(rng.normal(0, 0.1, (FEATURES, HIDDEN)), jnp.float32),
        "last": jnp.zeros(CLASSES),
        "second": jnp.asarray(rng.normal(0, 0.1, (HIDDEN, CLASSES)), jnp.float32),
    }

    def loss(values: Any, x: Any, y: Any) -> Any:
        logits = jax.nn.relu(x @ values["first"] + values["bias"]) @ values["second"] + values["last"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])

    watch = auditor.training.jax_privacy(claim=1.0, seed=seed)
    library = jax_privacy.clipped_grad
    if bug == "clipping of the batch's mean":
        jax_privacy.clipped_grad = partial(_of_the_mean, library)
    grad_fn = watch.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
    jax_privacy.clipped_grad = library
    noise = 0.5 if bug == "noise scaled by half of the clipping norm" else SCALED.get(bug or "", 1.0)
    privatizer = jax_privacy.noise_addition.gaussian_privatizer(
        stddev=noise * grad_fn.sensitivity(), prng_key=jax.random.key(seed)
    )
    update = privatizer.update

    def changed(sums: Any, state: Any, params: Any = None) -> Any:
        noised, new = update(sums, state, params)
        if bug == "a bias of 10 numbers without noise":
            return {**noised, "last": sums["last"]}, new
        return (noised, state) if bug == "the same noise every step" else (noised, new)

    privatizer = watch.privatizer(privatizer._replace(update=changed))
    held = [values, privatizer.init(values)]

    @jax.jit
    def step(values: Any, state: Any, x: Any, y: Any) -> Any:
        noised, state = privatizer.update(grad_fn(values, x, y), state)
        return jax.tree.map(lambda value, each: value - 0.1 * each / BATCH, values, noised), state

    def once(x: np.ndarray, y: np.ndarray) -> None:
        clipping, clip = jax_privacy.clipping, jax_privacy.clipping.clip_pytree
        if bug == "clipping off":  # while the step is traced
            clipping.clip_pytree = lambda tree, **_: (tree, jnp.float32(0))
        held[:] = jax.block_until_ready(step(*held, x, y))
        clipping.clip_pytree = clip

    return _batches(seed, once, watch)


LIBRARIES: dict[
    str, tuple[str, Callable[[str | None, int], Training | None], Callable[..., Callable[[], None]] | None]
] = {
    "Opacus": ("opacus", opacus, opacus_cost),
    "TensorFlow Privacy": ("tensorflow_privacy", tensorflow, tensorflow_cost),
    "JAX Privacy": ("jax_privacy", jax, None),
}


# --- The tables ---


def refuted_after(training: Training, most: int) -> tuple[int | None, Any]:
    """Return the step after which the claim is refuted, None without one, and the watch."""
    for taken, watch in enumerate(training, start=1):
        if watch.refuted or taken == most:
            return (taken if watch.refuted else None), watch
    raise AssertionError("a training does not end by itself")


def cost(make: Callable[..., Callable[[], None]]) -> float:
    """Return the processor time of a step with the audit over that without; medians, both in turn."""
    plain, watched = make(watched=False), make(watched=True)
    times: dict[Callable[[], None], list[float]] = {plain: [], watched: []}
    for _ in range(12):
        for step in (plain, watched):
            start = time.process_time()
            step()
            times[step].append(time.process_time() - start)
    return statistics.median(times[watched][2:]) / statistics.median(times[plain][2:])


def of_bug(name: str, bug: str, most: int, seeds: int) -> str:
    """Return the row of a bug."""
    ends = []
    for seed in range(seeds):
        training = LIBRARIES[name][1](bug, seed)
        if training is None:
            return f"| {name} | {bug} | cannot be planted | | | {most} |"
        ends.append(refuted_after(training, most)[0])
    steps = sorted(end for end in ends if end is not None)
    middle, last = (statistics.median(steps), steps[-1]) if steps else (math.nan, "")
    return f"| {name} | {bug} | {len(steps)} of {len(ends)} | {middle:g} | {last} | {most} |"


def of_correct(name: str, seeds: int) -> str:
    """Return the row of the correct trainings."""
    ends, limits = [], []
    for seed in range(seeds):
        end, watch = refuted_after(LIBRARIES[name][1](None, 1000 + seed) or iter(()), STEPS)
        ends.append(end)
        limits.append(watch.audit.noise_at_most)
    refuted = sum(end is not None for end in ends)
    return f"| {name} | {seeds} | {refuted} | {statistics.median(limits):.3f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--correct", type=int, default=67)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("auditor.training").setLevel(logging.ERROR)
    there = [name for name, (module, *_) in LIBRARIES.items() if find_spec(module)]
    print("| library | training | refuted | steps: median | largest | allowed |")
    print("| --- | --- | --: | --: | --: | --: |")
    for name in there:
        for bug, most in BUGS.items():
            print(of_bug(name, bug, most, options.seeds), flush=True)
    print("\n| library | correct trainings of 400 steps | refuted | noise certified, median |")
    print("| --- | --: | --: | --: |")
    for name in there:
        print(of_correct(name, options.correct), flush=True)
    print("\n| library | step with the audit over that without, 1 million parameters |\n| --- | --: |")
    for name in there:
        make = LIBRARIES[name][2]
        if make is not None:
            print(f"| {name} | {cost(make):.2f} |", flush=True)


if __name__ == "__main__":
    main()
