"""Long collections: any number of records in constant memory, and no work lost when they are stopped."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "collecting": "collect typed_classes",
        "output": "locked refuse_other_model",
        "ray": "RayEngine SealedTask packed_error ray_session unpacked_report",
        "run": "Trial stream_to",
        "scorers": "predictor",
        "trial": "Preflight preflight",
        "units": (
            "BuiltScorer Collection LocalEngine Unit checked_part part_path read_part read_stretch "
            "score_unit unit_size write_part"
        ),
    },
)
