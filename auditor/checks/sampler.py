"""Were the batches drawn as the claim's accountant assumes?"""

from auditor.core.options import DPSGD, TrainingClaim
from auditor.core.values import Check, Status


def sampler_check(claim: TrainingClaim | None) -> Check | None:
    """Warn of a claim whose batches were shuffled and accounted as Poisson-sampled; null for any other.

    Passes over shuffled records use each record once a pass, so batches are not independent. The epsilon of Poisson
    sampling is not proven for them, and the true one can be larger: Chua et al. 2024, How Private are DP-SGD
    Implementations? Libraries that report it all the same: jax_privacy (pull request 272), and Opacus with
    ``poisson_sampling=False``; Opacus issues 813 and 819 are other cases of an accountant beside what was trained.

    >>> from auditor.core.options import ShuffledBatches
    >>> str(sampler_check(DPSGD(1.0, 0.01, 100, sampling=ShuffledBatches())).status)
    'warn'
    """
    if not (isinstance(claim, DPSGD) and claim.shuffled):
        return None
    message = (
        "The claim's batches were shuffled and accounted as Poisson-sampled: its epsilon is not proven for shuffled"
        " batches, and the true one can be larger."
    )
    return Check("sampler", Status.WARN, message, {"sampling": "shuffled"})
