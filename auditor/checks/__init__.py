"""Checks: can the numbers be relied on? Each answers one question with a sentence for a privacy reviewer."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "copies": "duplicates twins",
        "losses": "collection direction goodness_of_fit masking persons power saturation sensitivity ties",
        "null_audits": "label_shuffle placebo",
        "populations": "encoded shift",
        "registry": "CHECKS RUN_CHECKS",
        "sampler": "sampler_check",
    },
)
