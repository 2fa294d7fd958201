"""Losses become a trade-off curve: transforms, fitted densities, counts at every threshold."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "gaussian": (
            "Gaussian SAMPLE_SIZES distance_test fit_gaussian fit_gaussian_pair held_out_tests partition two_sample_ks"
        ),
        "mixture": ("MixtureOfGaussians combined_test condensed fit_mixture fit_mixture_pair log_evidence"),
        "tradeoff": "TradeoffCurve count",
        "transforms": "chain log_odds logit_map normalise published shift",
    },
)
