"""A result as people and programs read it: page, terminal, Markdown, card, JUnit, SARIF."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "ci": "junit sarif",
        "comparison": "listed",
        "findings": "finding headline recognition verdict_sentence",
        "html": "context exposed_section gate_section render risk_section",
        "methods": "REFERENCES cited grid_tables methods_section",
        "summary": "escaped markdown",
        "view": "View gates_first view_of",
        "terminal": "algorithm_text audit_text comparison_text plan_text",
    },
)
