"""The checks of an audit, in the order in which a result lists them."""

from auditor.checks import copies, losses, null_audits, populations, sampler
from auditor.core.registry import CheckSpec, Registry

CHECKS: Registry[CheckSpec] = Registry(
    losses.DIRECTION,
    losses.TIES,
    losses.BINS,
    losses.SATURATION,
    losses.MASKING,
    losses.COLLECTION,
    copies.DUPLICATES,
    losses.PERSONS,
    populations.SHIFT,
    null_audits.PLACEBO,
    null_audits.LABEL_SHUFFLE,
    losses.POWER,
    losses.SENSITIVITY,
    losses.GOODNESS_OF_FIT,
    sampler.SAMPLER,
)
# Those that only an audit of many runs makes; its others have the name and the meaning of one above.
RUN_CHECKS: Registry[CheckSpec] = Registry(copies.REPEATS)
