from auditor.curves.cells import Partition
from auditor.curves.gaussian import (
    SAMPLE_SIZES,
    Gaussian,
    distance_test,
    fit_gaussian,
    fit_gaussian_pair,
    held_out_tests,
    partition,
    two_sample_ks,
)
from auditor.curves.mixture import (
    MixtureOfGaussians,
    combined_test,
    condensed,
    fit_mixture,
    fit_mixture_pair,
    log_evidence,
)
from auditor.curves.tradeoff import TradeoffCurve, count
from auditor.curves.transforms import log_odds, normalise, published
from auditor.curves.views import Histogram, NamedCurve, claimed_line, fitted, histograms
