"""The checks of an audit, in the order in which a result lists them."""

from auditor.checks.copies import DUPLICATES, REPEATS
from auditor.checks.losses import (
    COLLECTION,
    DIRECTION,
    GOODNESS_OF_FIT,
    PERSONS,
    POWER,
    SATURATION,
    SENSITIVITY,
    TIES,
)
from auditor.checks.null_audits import LABEL_SHUFFLE, PLACEBO
from auditor.checks.populations import SHIFT
from auditor.checks.sampler import SAMPLER
from auditor.core.registry import CheckSpec, Registry

CHECKS: Registry[CheckSpec] = Registry(
    DIRECTION,
    TIES,
    SATURATION,
    COLLECTION,
    DUPLICATES,
    PERSONS,
    SHIFT,
    PLACEBO,
    LABEL_SHUFFLE,
    POWER,
    SENSITIVITY,
    GOODNESS_OF_FIT,
    SAMPLER,
)
# Those that only an audit of many runs makes; its others have the name and the meaning of one above.
RUN_CHECKS: Registry[CheckSpec] = Registry(REPEATS)
