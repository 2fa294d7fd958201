"""What every room stands on: values, choices, checked arguments, numbers as text, files written whole."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "errors": "AuditorError InputError MissingExtraError OutputError",
        "files": "whole",
        "numbers": "clean plain",
        "options": "Adjacency AnyGuesses BernoulliSplit Calibrated Census ClopperPearson Context DPSGD EachRecord FDP FixedSizeSampling FixedThreshold Jeffreys Katz Melded Members MembershipSplit Mixture OnePerPerson OneRunTest Phase PoissonSampling PrivacyUnit RandomSplit RankGrid Sample ShuffledBatches Split StatedClaim StatedCurve Steinke Subset ThresholdRule UnknownSplit",
        "registry": "CheckSpec Equation Metric Registry Role Unit",
        "values": ("Check Claim Comparison Estimate LossScale Losses PerGroup Status Subject Verdict"),
    },
)
