"""Step audits of TensorFlow Privacy: canaries as losses that are linear in the parameters, and the gradients of the update."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Unpack

import numpy as np

from auditor.core import DPSGD, InputError, import_optional
from auditor.training.step_audit import Options, StepAudit
from auditor.training.tensorflow_tracker import TrainFunction, every_batch, fitted, noise_of, one_each
from auditor.training.watch import Watch


def tensorflow_privacy(
    model_or_optimizer: Any, *, claim: DPSGD | float, **options: Unpack[Options]
) -> "TensorFlowWatch":
    """Watch a training by TensorFlow Privacy: its noise, its clipping, and the parameters that both cover.

    ::

        model.compile(optimizer=DPKerasSGDOptimizer(...), loss=loss)  # or a DPModel with any optimizer
        watch = auditor.training.tensorflow_privacy(model, claim=auditor.DPSGD(1.0, 0.01, 1000))
        model.fit(...)  # as always
        watch.result().to_html("training.html")

    Loops of your own are watched too, if they run eagerly; a compiled step is called through `TensorFlowWatch.step`. The
    canaries enter as the losses of more records, which the framework differentiates, clips and adds noise to itself, and
    the scores are taken from the gradients that the update gets. With a DP optimizer every canary has a row in each batch,
    with a loss of 0 where its coin is tails, and the framework divides by the number of all rows: updates are smaller than
    without the audit.

    Args:
        model_or_optimizer: The compiled model, of `DPModel` or with a DP optimizer (flat, vectorized or sparse); or the DP
            optimizer alone, for loops of your own.
        claim: As in `StepAudit`.
        **options: Canaries, scale, confidence and seed, as in `StepAudit`.

    Raises:
        InputError: A training that is not private, or one that clips groups of records, accumulates gradients or clips
            without per-example gradients; a bad argument.
        MissingExtraError: TensorFlow is not installed.
    """
    tf = import_optional(
        "tensorflow", purpose="auditing a training by TensorFlow Privacy", extra="tensorflow"
    )
    model = model_or_optimizer if isinstance(model_or_optimizer, tf.keras.Model) else None
    optimizer = model_or_optimizer if model is None else getattr(model, "optimizer", None)
    every_batch(optimizer) if model is None else fitted(model)
    private = noise_of(model_or_optimizer)
    if private is None:
        raise InputError(
            "model_or_optimizer must train by TensorFlow Privacy with fresh Gaussian noise, got"
            f" {type(optimizer).__name__} without it."
        )
    if getattr(model, "_enable_fast_peg_computation", False):
        raise InputError(
            "model must clip per-example gradients: leave layer_registry out, which clips without."
        )
    return TensorFlowWatch(StepAudit(claim, **options), tf, model, optimizer, private[0])


class TensorFlowWatch(Watch):
    """The watch of a model or an optimizer of TensorFlow Privacy."""

    def __init__(self, audit: StepAudit, tf: ModuleType, model: Any, optimizer: Any, norm: float) -> None:
        super().__init__(audit)
        self._tf, self._norm = tf, norm
        self._variables: list[Any] = []
        self._tossed = self._open = False
        if hasattr(model, "_process_per_example_grads"):
            self._microbatches = model._num_microbatches  # noqa: SLF001  no public name
            self._watch_model(model)
            self._become(optimizer, self._reader(optimizer))
        else:
            # None is one for each record and each canary. The sparse optimizers derive their noise from it.
            kept = {name: vars(optimizer).get(name) for name in ("_num_microbatches", "_noise_stddev")}
            self._microbatches = kept["_num_microbatches"]
            vars(optimizer).update(dict.fromkeys(kept))
            self._undo.append(lambda: vars(optimizer).update(kept))
            self._watch_optimizer(optimizer)
        if model is not None:
            self._undo.append(TrainFunction(tf, model, self._before, self._end).remove)

    # --- One step, from outside ---

    def step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a training step of a loop of your own that is watched: call it in place of one that `tf.function` compiles.

        Args:
            function: A function that makes one update in each call.
        """
        python = getattr(function, "python_function", None)
        # Compiled here, so that the function itself holds no canaries after `detach`.
        compiled = function if python is None else self._tf.function(python)

        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self._undo:
                return function(*args, **kwargs)
            self._begin()
            result = compiled(*args, **kwargs)
            self._end()
            return result

        return watched

    def _before(self, *data: Any) -> None:
        one_each(self._microbatches, self._tf.nest.flatten(data)[0].shape[0])
        self._begin()

    def _begin(self) -> None:
        """Toss the coins of a step, once its parameters are known."""
        self._open = True
        if self._variables and not self._tossed:
            self._coins.assign(self.audit.toss(self._shapes, clipping_norm=self._norm))
            self._scores.assign(self._tf.zeros_like(self._scores))
            self._reads.assign(0)
            self._tossed = True

    def _end(self) -> None:
        """Observe the scores of a step whose update was made."""
        self._open = False
        reads = int(self._reads) if self._tossed else 0
        if reads > len(self._variables):
            raise InputError("a training step must make one update in each call, got several.")
        if reads:
            self._tossed = False
            self.audit.observe_scores(self._scores.numpy().astype(np.float64))

    # --- One step, inside: these may be traced ---

    def _prepare(self, variables: list[Any]) -> Any:
        """Return the coins of the step, once: what is computed again before the update has no canaries."""
        tf = self._tf
        if tf.executing_eagerly():
            self._begin()
        if not self._open:
            raise InputError(
                "a compiled step must be called through step of the watch; for fit, watch the model, not its optimizer."
            )
        if not self._variables:
            with tf.init_scope():
                names = [each.name.removesuffix(":0") for each in variables]
                names = [name if names.count(name) == 1 else f"{name} {at}" for at, name in enumerate(names)]
                self._shapes = {name: tuple(each.shape) for name, each in zip(names, variables, strict=True)}
                coins = self.audit.toss(self._shapes, clipping_norm=self._norm)
                blocks = self.audit.blocks
                reader = blocks.readers(blocks.limits(self._norm))
                flat = (blocks.vector * (self.audit.scale * self._norm), reader, blocks.owner)
                # For each tensor: the gradient of its canaries, the weights in their scores, and which they are.
                self._flat = [[tf.constant(each[at]) for each in flat] for at in blocks.slices.values()]
                values = (coins, np.zeros(coins.size, np.float32), 0, 0.0)
                self._coins, self._scores, self._reads, self._rows = (
                    tf.Variable(value, trainable=False) for value in values
                )
            self._variables, self._tossed = variables, True
        coins = tf.identity(self._coins)
        self._coins.assign(tf.zeros_like(coins))
        return coins

    def _losses(self, coins: Any) -> Any:
        """Return one loss for each canary, linear in the parameters; 0 where the coin is tails."""
        tf = self._tf
        parts = [
            tf.math.unsorted_segment_sum(
                tf.reshape(each, [-1]) * tf.cast(gradient, each.dtype), owner, coins.shape[0]
            )
            for each, (gradient, _, owner) in zip(self._variables, self._flat, strict=True)
        ]
        total = tf.add_n(parts)
        return tf.where(coins, total, tf.zeros_like(total))

    def _loss_of(self, place: Any, coins: Any) -> Any:
        """Return the loss of one canary, whose value nobody reads: only its gradient, written directly, which is faster."""
        tf = self._tf

        one = tf.where(tf.gather(coins, place), place, -1)  # of tails nobody's

        def rows(upstream: Any) -> list[Any]:
            return [
                tf.reshape(
                    tf.where(owner == one, upstream * tf.cast(gradient, upstream.dtype), 0.0), each.shape
                )
                for each, (gradient, _, owner) in zip(self._variables, self._flat, strict=True)
            ]

        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def loss(*values: Any) -> Any:
            return tf.zeros((), values[0].dtype), rows

        return loss(*map(tf.convert_to_tensor, self._variables))

    def _with(self, records: Any, canaries: Any) -> Any:
        """Return the rows of records and canaries, whose number the framework divides by."""
        whole = self._tf.concat([records, canaries], axis=0)
        self._rows.assign(self._tf.cast(self._tf.shape(whole)[0], self._tf.float32))
        return whole

    def _read(self, gradient: Any, variable: Any) -> None:
        """Add up the scores in the gradient that the update of a tensor gets."""
        tf = self._tf
        _, reader, owner = self._flat[[each is variable for each in self._variables].index(True)]
        part = tf.math.unsorted_segment_sum(
            tf.cast(tf.reshape(gradient, [-1]), reader.dtype) * reader, owner, self._scores.shape[0]
        )
        self._scores.assign_add(part * self._rows)
        self._reads.assign_add(1)
        if tf.executing_eagerly() and int(self._reads) == len(self._variables):
            self._end()

    # --- The classes that a watched model and a watched optimizer have meanwhile ---

    def _become(self, thing: Any, *bases: type, **methods: Any) -> None:
        """Give an object a subclass of its class."""
        own: Any = type(thing)
        bases = bases if any(issubclass(base, own) for base in bases) else (own, *bases)
        self._undo.append(lambda: object.__setattr__(thing, "__class__", own))
        object.__setattr__(thing, "__class__", type(own.__name__, bases, methods))

    def _reader(self, optimizer: Any) -> type:
        """Return a class between that of a DP optimizer, which may add noise at the very end, and Keras' update."""
        keras: Any = next(kind for kind in type(optimizer).__mro__ if kind.__module__.startswith("keras."))
        name = "_resource_apply_dense" if hasattr(keras, "_resource_apply_dense") else "update_step"

        def update(optimizer: Any, gradient: Any, variable: Any, *args: Any, **kwargs: Any) -> Any:
            self._read(gradient, variable)
            return getattr(keras, name)(optimizer, gradient, variable, *args, **kwargs)

        return type(keras.__name__, (keras,), {name: update})

    def _watch_optimizer(self, optimizer: Any) -> None:
        """Let a DP optimizer differentiate the losses of the canaries beside those of the records."""
        tf, compute = self._tf, type(optimizer)._compute_gradients  # noqa: SLF001  no public name

        def compute_gradients(
            optimizer: Any, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
        ) -> Any:
            def every() -> Any:
                own = loss() if callable(loss) else loss
                if not own.shape.rank:
                    raise InputError("loss must have one value for each record, got one; use Reduction.NONE.")
                one_each(self._microbatches, own.shape[0])
                coins = self._prepare(tf.nest.flatten(var_list() if callable(var_list) else var_list))
                own = tf.reduce_mean(tf.reshape(own, [tf.shape(own)[0], -1]), axis=1)
                return self._with(own, self._losses(coins))

            return compute(optimizer, every, var_list, grad_loss, tape)

        self._become(optimizer, self._reader(optimizer), _compute_gradients=compute_gradients)

    def _watch_model(self, model: Any) -> None:
        """Let a DP model clip the gradients of its first record with the losses of the canaries in place of its own."""
        tf, kind = self._tf, type(model)
        clipped: list[Any] = []

        def train_step(model: Any, data: Any) -> Any:
            if not self._undo:
                return kind.train_step(model, data)
            coins, kept = self._prepare(model.trainable_variables), model._clipping_loss  # noqa: SLF001
            first = tf.nest.map_structure(lambda each: each[:1], data)

            def one(place: Any) -> Any:
                model._clipping_loss = lambda *_, **__: self._loss_of(place, coins)  # noqa: SLF001
                return model._compute_per_example_grads(first)  # noqa: SLF001

            # One after the other, since rows of all at once would take longer to write than to clip.
            places = tf.range(coins.shape[0])
            if compiled is None:
                places = tf.boolean_mask(places, coins)
            sums = tuple(tf.zeros(each.shape, each.dtype) for each in self._variables)

            def add(at: Any, sums: Any) -> Any:
                return at + 1, tuple(map(tf.add, sums, tf.nest.flatten(one(places[at]))))

            try:
                clipped[:] = tf.while_loop(lambda at, _: at < tf.size(places), add, (0, sums))[1]
            finally:
                model._clipping_loss = kept  # noqa: SLF001
            return kind.train_step(model, data)

        def reduce(model: Any, stacked: Any) -> Any:  # one tensor after the other
            # Added to the first record, in place where TensorFlow can, for more rows would copy all of them.
            total = clipped.pop(0)[None]
            self._rows.assign(tf.cast(tf.shape(stacked)[0], tf.float32))
            whole = tf.tensor_scatter_nd_add(stacked, [[0]], tf.cast(total, stacked.dtype))
            return kind._reduce_per_example_grads(model, whole)  # noqa: SLF001

        compiled = vars(model).get("train_step")
        self._become(model, train_step=train_step, _reduce_per_example_grads=reduce)
        if compiled is not None:  # by XLA, with the method of the class before
            model.train_step = tf.function(partial(train_step, model), jit_compile=True)
            self._undo.append(lambda: setattr(model, "train_step", compiled))
