"""Long collections: any number of records in constant memory, and no work lost when they are stopped."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "collecting": "collect typed_classes",
        "engines": "LocalEngine attempted result_of",
        "output": "locked refuse_other_model",
        "ray": "RayEngine ray_session",
        "run": "Collection",
        "scorers": "predictor",
        "trial": "Preflight preflight",
        "units": "Scoring Unit part_path read_part read_stretch unit_size write_part",
    },
)
