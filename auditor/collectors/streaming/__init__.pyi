from auditor.collectors.streaming.collecting import collect
from auditor.collectors.streaming.engines import LocalEngine, RayEngine, attempted, ray_session, result_of
from auditor.collectors.streaming.parts import Scoring, Unit, locked, unit_size
from auditor.collectors.streaming.resume import Collection, refuse_other_losses
from auditor.collectors.streaming.scorers import ScorerRecipe, ScoringOptions, predictor
from auditor.collectors.streaming.trial import Preflight, preflight
