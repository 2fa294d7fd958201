"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "canvas": "TIP any_letter histogram one_line svg tip",
        "epsilons": "Kind epsilon_rows",
        "gallery": "FIGURES alt figure",
    },
)
