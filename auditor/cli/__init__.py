"""The command line: what was typed becomes values, values become results, results become files."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "app": "main run",
        "console": "hand_out",
        "project": "EXAMPLE run_demo",
        "sentences": "with_options",
    },
)
