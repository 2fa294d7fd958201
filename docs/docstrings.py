"""Docstrings as pages show them: doctests are code, and a class that takes another's docstring has it."""

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes docstrings after they are read, so that Markdown does not take ``>>>`` for a quotation."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Put doctests in a block of code."""
        if obj.docstring:
            obj.docstring.value = _DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give a class with ``__doc__ = Other.__doc__`` the docstring of the other."""
        for module in (pkg, *pkg.modules.values()):
            for found in module.classes.values():
                if isinstance(found, griffe.Class) and "__doc__" in found.members:
                    name = str(found.members["__doc__"].value).removesuffix(".__doc__")
                    found.docstring = (
                        module[name].final_target.docstring
                        if module[name].is_alias
                        else module[name].docstring
                    )
