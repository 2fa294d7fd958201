"""The command line: what was typed becomes values, values become results, results become files."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "app": "main run",
        "console": "hand_out with_options",
        "help": "EXAMPLES EXIT_CODES GENERAL",
        "project": "EXAMPLE run_demo text",
        "settings_file": "options_of",
    },
)
