"""The part that all adapters share: a step audit that follows a training by itself."""

from typing import TYPE_CHECKING, Any

from auditor.training.step_audit import StepAudit

if TYPE_CHECKING:
    from collections.abc import Callable

    from auditor.results.document import TrainingResult


class Watch:
    """A training that is watched: train as always, and look at any moment.

    Canaries perturb the model: use a training that is made for the audit, and `detach` before any other.

    Attributes:
        audit: The `StepAudit` behind it.
    """

    def __init__(self, audit: StepAudit) -> None:
        self.audit = audit
        self._undo: list[Callable[[], Any]] = [lambda: None]  # empty after `detach`

    @property
    def steps(self) -> int:
        """Number of observed steps."""
        return self.audit.steps

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted; true once, true for good, so that training may stop."""
        return self.audit.refuted

    @property
    def progress(self) -> str:
        """Steps, evidence and certified noise, as a line."""
        return self.audit.progress

    def result(self, *, delta: float = 1e-5) -> "TrainingResult":
        """Return the verdict as a document; see `StepAudit.result`."""
        return self.audit.result(delta=delta)

    def detach(self) -> None:
        """Restore the training as it was; the evidence stays. Does nothing the second time."""
        while self._undo:
            self._undo.pop()()

    def __repr__(self) -> str:
        """Return the progress, and whether the claim is refuted."""
        return f"{type(self).__name__}({'refuted' if self.refuted else 'not refuted'}, {self.progress})"
