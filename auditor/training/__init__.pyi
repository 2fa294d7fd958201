from auditor.training.on_function import CheckedStep as CheckedStep, check_step as check_step, step as step
from auditor.training.on_jax import JaxWatch as JaxWatch, jax_privacy as jax_privacy
from auditor.training.on_opacus import opacus as opacus
from auditor.training.on_tensorflow import (
    TensorFlowWatch as TensorFlowWatch,
    tensorflow_privacy as tensorflow_privacy,
)
from auditor.training.projections import Projections as Projections
from auditor.training.step_audit import StepAudit as StepAudit
