"""A result as people and programs read it: page, terminal, Markdown, card, JUnit, SARIF."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
