"""Several models of one training mechanism: what they show together about the mechanism.

>>> import numpy as np
>>> from auditor.choices import RandomSplit
>>> from auditor.values import Losses
>>> rng = np.random.default_rng(0)
>>> models = [Losses(member=rng.normal(-2, 1, 500), nonmember=rng.normal(0, 1, 500)) for _ in range(10)]
>>> result = audit_instances(models, delta=1e-5, split=RandomSplit())
>>> 1 < result.estimate("epsilon_bound.instances").lower < result.estimate("epsilon_bar").value
True
"""

from auditor.instances.audit import audit_instances
from auditor.instances.curves import rank_curves
from auditor.instances.result import InstancesResult
from auditor.instances.text import text

__all__ = ["InstancesResult", "audit_instances", "rank_curves", "text"]
