"""A result as people and programs read it: page, terminal, Markdown, card, JUnit, SARIF."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "ci": "junit sarif",
        "comparison": "listed",
        "findings": "finding headline recognition verdict_sentence",
        "html": "cited escaped glossary markdown methods_section render texts",
        "view": "View gates_first view_of",
        "terminal": "algorithm_text audit_text comparison_text plan_text",
    },
)
