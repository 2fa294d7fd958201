"""Family: files of models become models, without running what strangers wrote in them."""

from auditor.collectors.loading.load_model import load_model

__all__ = ["load_model"]
