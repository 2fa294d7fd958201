"""Family: tables of records to score, read a stretch at a time."""

from auditor.collectors.sources.groups import open_groups, open_source
from auditor.collectors.sources.source import Batch, Source

__all__ = ["Batch", "Source", "open_groups", "open_source"]
