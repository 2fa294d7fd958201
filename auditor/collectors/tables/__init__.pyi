from auditor.collectors.tables.collected import read_metadata
from auditor.collectors.tables.opening import RecordTable, open_groups, open_source
from auditor.collectors.tables.reading import read_losses
from auditor.collectors.tables.sources import readable
