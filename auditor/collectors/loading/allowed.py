"""Lists of names that are allowed, written as text."""

__all__ = ["allowed"]


def allowed(names: str) -> frozenset[str]:
    """Return the words of a text as a set.

    >>> sorted(allowed("If Case While"))
    ['Case', 'If', 'While']
    """
    return frozenset(names.split())
