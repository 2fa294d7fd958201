"""Long collections: any number of records in constant memory, and no work lost when they are stopped.

Importing it loads numpy only; pyarrow is imported in the functions that need it.
"""

from auditor.collectors.streaming.collect_to import collect_to
from auditor.collectors.streaming.collection import Collection, Ready, Unit, UnitReport
from auditor.collectors.streaming.engine import Engine, LocalEngine, score_unit
from auditor.collectors.streaming.metadata import CollectedMetadata, read_metadata
from auditor.collectors.streaming.report import CollectedReport, Trial

__all__ = [
    "CollectedMetadata",
    "CollectedReport",
    "Collection",
    "Engine",
    "LocalEngine",
    "Ready",
    "Trial",
    "Unit",
    "UnitReport",
    "collect_to",
    "read_metadata",
    "score_unit",
]
