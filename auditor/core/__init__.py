"""Base of every room: values, choices, checked arguments, numbers as text, files written whole.

Other rooms import its names from here. None of them is public here: the public ones are those of `auditor`.
"""

from auditor.core.lazy import face

__getattr__, __dir__, _ = face(__name__)
__all__: list[str] = []
