from auditor.collectors.streaming.collecting import (
    collect,
    opened_scorer,
    records_of,
    typed_classes,
)
from auditor.collectors.streaming.engines import LocalEngine, attempted, result_of
from auditor.collectors.streaming.output import locked, refuse_other_model
from auditor.collectors.streaming.ray import RayEngine, ray_session
from auditor.collectors.streaming.run import Collection
from auditor.collectors.streaming.scorers import predictor
from auditor.collectors.streaming.trial import Preflight, preflight
from auditor.collectors.streaming.units import (
    Scoring,
    Unit,
    part_path,
    read_part,
    read_stretch,
    unit_size,
    write_part,
)
