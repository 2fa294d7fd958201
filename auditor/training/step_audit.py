"""An audit of the noise, the clipping and the parameters of DP-SGD from inside one training, step by step."""

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from auditor.core import DPSGD, Booleans, Floats, InputError, PoissonSampling, as_stated, number, validate
from auditor.training.bets import RATIOS, StepBets
from auditor.training.blocks import Blocks, Limits, Shapes
from auditor.training.sampler import SamplerBets

if TYPE_CHECKING:
    from auditor.results.document import TrainingResult

_log = logging.getLogger("auditor.training")
_OF_SAMPLER = 0.2  # of the error, where the sampler is tested
_FAIR = 0.5
_OWN = 0x57E9  # begins the random stream, so that no other use of the same seed shares it
_MEMORY = 0.9  # of the prediction of a score from earlier ones


class Options(TypedDict, total=False):
    """Options of a `StepAudit` that every adapter passes on."""

    canaries: int
    scale: float
    confidence: float
    seed: int | None


class StepAudit:
    """Canaries in the steps of one DP-SGD training, and the evidence of their scores against the claimed noise.

    Use a training that is made for the audit: the canaries change the model, as up to half of them are added to each
    batch with norm ``clipping_norm`` each. The test is white-box. It is about the training code and its settings, it holds
    whenever you look, and it acquits nothing: what is not refuted may still be wrong.

    In each step call `insert`, add its rows to the per-example gradients, train, and give `observe` the sum with its
    noise. The adapters of `auditor.training` do this for Opacus, TensorFlow Privacy and JAX Privacy.

    Attributes:
        steps: Number of observed steps.
        notes: What was done differently from what was ordered, such as fewer canaries, in sentences.

    Args:
        claim: The training (`DPSGD`), whose noise multiplier is judged, by step if it has one for each; or the noise
            multiplier, above 0. The sampling rate enters the test of the sampler only, and the number of steps nothing.
        canaries: Number of canaries, 1 or more.
        scale: Norm of a canary's gradient before clipping, in clipping norms, above 1.
        confidence: Confidence of the verdict, in (0, 1).
        seed: Seed of directions and coins; by default from the system's randomness.
        records: Number of training records, to test the sampler of a claim of Poisson sampling; it takes a fifth of the error.

    Raises:
        InputError: An argument out of range, or a claim without noise.

    Source: [own], derived in `auditor.training.bets`; canary gradients follow Nasr et al. 2023.

    >>> rng, audit = np.random.default_rng(0), StepAudit(1.0, canaries=32, seed=1)
    >>> while not audit.refuted:
    ...     rows = audit.insert({"weights": (400,)})["weights"]
    ...     clipped = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    ...     audit.observe({"weights": clipped.sum(axis=0) + rng.normal(0, 0.5, 400)})  # half of the claimed noise
    >>> audit.steps < 100
    True
    """

    def __init__(
        self,
        claim: DPSGD | float,
        *,
        canaries: int = 64,
        scale: float = 10.0,
        confidence: float = 0.95,
        seed: int | None = None,
        records: int | None = None,
    ) -> None:
        self.claim = claim
        if isinstance(claim, str):
            raise InputError(f"claim must be a DPSGD or a noise multiplier above 0, got {claim!r}.")
        noise = claim.noise_multiplier if isinstance(claim, DPSGD) else validate.positive("claim", claim)
        self._noise = noise
        self._ordered = validate.at_least("canaries", canaries, least=1)
        self.scale, self.confidence = validate.number("scale", scale), validate.confidence(confidence)
        if not 1 < self.scale < math.inf:
            raise InputError(f"scale must be above 1, so that clipping must act, got {scale!r}.")
        self._rng = np.random.default_rng(None if seed is None else [seed, _OWN])
        self.drawn_with = {} if seed is None else {"seed": seed}  # for the result
        self.sampler = self._sampler_of(records)
        self.notes: list[str] = []
        self._blocks: Blocks | None = None
        self._coins: Booleans | None = None
        self.evidence_by_step: list[float] = []
        self.is_centred = True  # whether the batch's own gradients were known in every step

    def _sampler_of(self, records: int | None) -> SamplerBets | None:
        if records is None:
            return None
        if not isinstance(self.claim, DPSGD) or not isinstance(self.claim.sampling, PoissonSampling):
            raise InputError(
                "records must be left out unless the claim is a DPSGD with Poisson sampling, which is then tested."
            )
        if isinstance(self.claim.sampling_rate, tuple):
            raise InputError("records must be left out where the claim has a sampling rate for each step.")
        return SamplerBets(records=records, rate=self.claim.sampling_rate)

    # --- One step ---

    def insert(self, shapes: Shapes, *, clipping_norm: Limits = 1.0) -> dict[str, npt.NDArray[np.float32]]:
        """Toss the coins of a step, and return the gradients to add to those of the batch, before clipping.

        Args:
            shapes: Shape of each trained parameter tensor, by name, the same in every step.
            clipping_norm: The clipping norm C of this step, above 0; of clipping by tensor one for each name.

        Returns:
            By tensor, an array of shape (k, *shape) for the k canaries whose coin is heads.

        Raises:
            InputError: Other parameters than before, a bad clipping norm, or a step before that was not observed.
        """
        coins = self.toss(shapes, clipping_norm=clipping_norm)
        return self.blocks.rows(np.flatnonzero(coins), self._limits, scale=self.scale)

    def toss(self, shapes: Shapes, *, clipping_norm: Limits = 1.0) -> Booleans:
        """Toss the coins of a step, as `insert` does, and return them; shape (canaries,)."""
        if self._coins is not None:
            raise InputError(
                f"step {self.steps + 1} must be observed before the next one; call observe with its noisy sum."
            )
        if self._blocks is None:
            self._start(shapes, clipping_norm)
        if dict(shapes) != self.blocks.shapes:
            raise InputError(
                f"the model must keep its trained parameters, got others in step {self.steps + 1}; watch a new training."
            )
        self._limits = self.blocks.limits(clipping_norm)
        self._coins = self._rng.random(self.blocks.canaries) < _FAIR
        return self._coins

    def _start(self, shapes: Shapes, clipping_norm: Limits) -> None:
        by_tensor = isinstance(clipping_norm, Mapping)
        self._blocks = blocks = Blocks.of(shapes, canaries=self._ordered, by_tensor=by_tensor, rng=self._rng)
        if len(blocks.whole) != self._ordered:
            why = "the parameters" if len(blocks.whole) < self._ordered else "the parameter tensors"
            self.notes.append(f"{len(blocks.whole)} canaries in place of {self._ordered}, because of {why}.")
        self._bets = StepBets(
            blocks.shares(blocks.limits(clipping_norm)),
            tensors=blocks.tensors if len(blocks.tensors) > 1 else (),
            whole=blocks.whole,
        )
        self._tally = _Tally(blocks.canaries)
        _log.warning(
            "auditor adds canary gradients to every step of this training: use it for the audit, not for release."
        )

    def observe(
        self, noisy_sum: Mapping[str, npt.ArrayLike], *, centre: Mapping[str, npt.ArrayLike] | None = None
    ) -> None:
        """Settle the evidence of a step.

        Args:
            noisy_sum: By tensor, the sum of the clipped gradients of batch and canaries with its noise, before any division.
            centre: By tensor, the sum of the batch's own gradients, clipped as claimed, which you computed yourself before
                the canaries were added; by default the scores are predicted from those of earlier steps.

        Raises:
            InputError: No step was inserted, or a sum that is not finite or has another shape.
        """
        own = None if centre is None else self.blocks.scores(self._flat(centre), self._limits)
        self.observe_scores(self.blocks.scores(self._flat(noisy_sum), self._limits), own)

    def _flat(self, values: Mapping[str, npt.ArrayLike]) -> Floats:
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        if {name: array.shape for name, array in arrays.items()} != self.blocks.shapes:
            raise InputError("noisy_sum and centre must have the tensors and the shapes that were inserted.")
        return np.concatenate([arrays[name].ravel() for name in self.blocks.shapes])

    def observe_scores(self, scores: Floats, centre: Floats | None = None) -> None:
        """Settle the evidence of a step by the scores of its canaries, as `Blocks.scores` computes them.

        Args:
            scores: Shape (canaries,): of the noisy sum.
            centre: Shape (canaries,): of the batch's own gradients; by default predicted from earlier steps.

        Raises:
            InputError: No step was inserted, or scores that are not finite.
        """
        if self._coins is None:
            raise InputError(
                "observe must follow insert, once in each step; got a step without canaries, or one twice."
            )
        if not (np.isfinite(scores).all() and (centre is None or np.isfinite(centre).all())):
            raise InputError(
                f"gradients must be finite, got some that are not in step {self.steps + 1}; is the learning rate too large?"
            )
        coins, self._coins = self._coins, None
        noise, shares = self._noise_of(self.steps), self.blocks.shares(self._limits)
        self.is_centred = self.is_centred and centre is not None
        centred = scores - (self._tally.predicted if centre is None else centre)
        self._tally.add(scores, centred, coins, noise / shares)
        self._bets.add(centred, coins, noise=noise, shares=shares)
        self.evidence_by_step.append(float(self._bets.most))

    def forget(self) -> None:
        """Forget the coins of a step that failed before its sum was known."""
        self._coins = None

    @property
    def largest_noise(self) -> float:
        """The largest claimed noise multiplier of the observed steps."""
        return float(np.max(self._noise[: self.steps]) if isinstance(self._noise, tuple) else self._noise)

    def _noise_of(self, step: int) -> float:
        if not isinstance(self._noise, tuple):
            return float(self._noise)
        if step >= len(self._noise):
            raise InputError(f"claim has {len(self._noise):,} steps, and the training takes more.")
        return float(self._noise[step])

    def observe_batch(self, size: int, records: npt.ArrayLike | None = None) -> None:
        """Settle the evidence against the sampler by one batch, an empty one too; does nothing without ``records``.

        Args:
            size: Number of records that were drawn for the step.
            records: Their indices, if they are known.

        Raises:
            InputError: A size or indices that are no batch of the records.
        """
        if self.sampler is not None:
            self.sampler.add(size, records)

    # --- The verdict ---

    @property
    def blocks(self) -> Blocks:
        """The directions of the canaries, which the first `insert` decides."""
        if self._blocks is None:
            raise InputError("insert must be called first: no step has been audited.")
        return self._blocks

    @property
    def steps(self) -> int:
        """Number of observed steps."""
        return 0 if self._blocks is None else self._bets.steps

    @property
    def shares(self) -> tuple[float, float]:
        """The error of the test of the steps, and that of the sampler."""
        alpha = 1 - self.confidence
        part = 0.0 if self.sampler is None else _OF_SAMPLER
        return alpha * (1 - part), alpha * part

    @property
    def log_evidence(self) -> float:
        """The largest log so far of the evidence against the claimed noise."""
        return float(self._bets.most) if self.steps else 0.0

    @property
    def noise_refuted(self) -> bool:
        """Whether the steps refute the claimed noise."""
        return self.log_evidence >= -math.log(self.shares[0])

    @property
    def sampler_refuted(self) -> bool:
        """Whether the batches refute Poisson sampling."""
        return self.sampler is not None and self.sampler.most >= -math.log(self.shares[1])

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, by its steps or by its sampler; true once, true for good."""
        return self.noise_refuted or self.sampler_refuted

    @property
    def noise_at_most(self) -> float:
        """The certified ratio of noise to claim, in the tensor with the least; at least 1 while the claim is not refuted."""
        most = float(self._bets.at_most(self.shares[0]).min()) if self.steps else math.inf
        return most if self.noise_refuted else max(most, 1.0)

    @property
    def measured(self) -> tuple[Floats, int, Floats]:
        """The noise of each canary's score over the claim, the number of steps, and the contribution of each clipped canary.

        The first is a standard deviation, the last is in clipping norms and nan before both sides of a coin were seen; shape
        (canaries,) each.
        """
        tally = self._tally
        with np.errstate(invalid="ignore"):
            means = tally.sums / tally.counts
        return np.sqrt(tally.squares / tally.steps), tally.steps, means[1] - means[0]

    @property
    def tensor_limits(self) -> Floats:
        """The certified ratio of noise to claim of each tensor, all at once; inf without one."""
        limits = self._bets.at_most(self.shares[0])
        limits = limits if self.noise_refuted else np.maximum(limits, 1.0)
        return limits[1:] if len(limits) > 1 else limits

    @property
    def most_telling(self) -> str:
        """The tensor whose own evidence against the claim is e times that of all canaries together or more; empty without one."""
        evidence = self._bets.grown[:, RATIOS == 1.0].ravel()
        place = int(evidence.argmax())
        return list(self.blocks.shapes)[place - 1] if evidence[place] >= evidence[0] + 1 else ""

    @property
    def nuisance(self) -> float:
        """The rest of the batch in the scores, as a standard deviation over that of the claimed noise; a point estimate.

        It is the square root of the mean product of two steps' scores, less coins and centre: noise is fresh in each step.
        """
        return math.sqrt(max(0.0, float(self._tally.again.mean()) / max(self.steps - 1, 1)))

    @property
    def progress(self) -> str:
        """Steps, evidence and certified noise, as a line.

        >>> StepAudit(1.0).progress
        '0 steps: evidence 1 of 20; no limit of the noise yet'
        """
        evidence, most = math.exp(min(self.log_evidence, 700.0)), self.noise_at_most
        limit = (
            "no limit of the noise yet" if math.isinf(most) else f"noise at most {most:.3g} times the claim"
        )
        return f"{self.steps:,} steps: evidence {number(evidence)} of {as_stated(round(1 / self.shares[0], 9))}; {limit}"

    def __repr__(self) -> str:
        """Return the progress, and whether the claim is refuted."""
        return f"{type(self).__name__}({'refuted' if self.refuted else 'not refuted'}, {self.progress})"

    def result(self, *, delta: float = 1e-5) -> "TrainingResult":
        """Return the verdict as a document with page, terminal summary, JSON and gates.

        Args:
            delta: Delta of the implied epsilon of the whole run, in (0, 1).

        Raises:
            InputError: No step was observed.
        """
        from auditor.training.judged import judged

        if not self.steps:
            raise InputError("result needs 1 observed step or more, got none; train first.")
        return judged(self, delta=validate.fraction("delta", delta))


class _Tally:
    """Sums over the steps for the measured noise and contribution of each canary, and predictions of scores; mutable."""

    def __init__(self, canaries: int) -> None:
        self.steps, self.squares, self.again = 0, np.zeros(canaries), np.zeros(canaries)
        self.sums, self.counts = np.zeros((2, canaries)), np.zeros((2, canaries))
        self._average, self._weight = np.zeros(canaries), 0.0
        self._errors = np.zeros(2)
        self._before = np.zeros(canaries)

    @property
    def predicted(self) -> Floats:
        """A prediction of the batch's part of the scores, from the past: the mean of recent steps if that was closer than 0."""
        average = self._average / max(self._weight, 1e-9)
        return average if self._errors[1] < self._errors[0] else np.zeros_like(average)

    def add(self, scores: Floats, centred: Floats, coins: Booleans, noise: Floats) -> None:
        """Add a step; ``noise`` is the claimed standard deviation of each score."""
        rest, own = (centred - coins) / noise, scores - coins
        self._errors += [(own**2).sum(), ((own - self._average / max(self._weight, 1e-9)) ** 2).sum()]
        self._average = _MEMORY * self._average + (1 - _MEMORY) * own
        self._weight = _MEMORY * self._weight + (1 - _MEMORY)
        self.squares += rest**2
        self.again += rest * self._before
        self._before = rest
        for side, which in enumerate((~coins, coins)):
            self.sums[side] += centred * which
            self.counts[side] += which
        self.steps += 1
