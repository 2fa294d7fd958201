from auditor.collectors.models.loading import load_model
from auditor.collectors.models.trust import quietly
