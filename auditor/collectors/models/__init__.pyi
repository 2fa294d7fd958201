from auditor.collectors.models.loading import load_model
