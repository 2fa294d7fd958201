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
from auditor.checks.null_audits import control as control, label_shuffle as label_shuffle, placebo as placebo
from auditor.checks.populations import shift
from auditor.checks.registry import CHECKS, RUN_CHECKS, sampler_check
