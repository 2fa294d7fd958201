from auditor.checks.carried import contents
from auditor.checks.copies import duplicates
from auditor.checks.losses import (
    collection,
    direction,
    goodness_of_fit,
    masking,
    persons,
    power,
    saturation,
    sensitivity,
    smallest_mu,
    ties,
)
from auditor.checks.null_audits import label_shuffle, placebo
from auditor.checks.populations import shift
from auditor.checks.registry import CHECKS, RUN_CHECKS, sampler_check
