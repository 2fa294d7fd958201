"""Proven coverage: every bound against laws whose truth is known, as a table of miss rates.

>>> from auditor.calibration import calibrate
>>> print(calibrate(runs=10, sizes=[50], bounds=["rank_grid"]).to_frame()["misses"].sum())
0
"""

from auditor.calibration.bounds import BOUNDS, Bound, Trial
from auditor.calibration.laws import LAWS, Law, set_epsilon
from auditor.calibration.table import Calibration, Row, calibrate

__all__ = ["BOUNDS", "LAWS", "Bound", "Calibration", "Law", "Row", "Trial", "calibrate", "set_epsilon"]
