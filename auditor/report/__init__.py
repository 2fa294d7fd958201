"""A result as people and programs read it: page, terminal, Markdown, card, JUnit, SARIF."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "ci": "junit sarif",
        "comparison": "listed",
        "findings": "finding headline recognition verdict_sentence",
        "annex": "annex_of",
        "folder": "site",
        "html": "card cited cyclonedx escaped glossary markdown methods_section model_card render",
        "view": "View gates_first texts view_of",
        "terminal": "audit_text comparison_text plan_text",
    },
)
