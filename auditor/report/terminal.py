"""What a terminal shows, as text: laid out to its width, with or without colour codes."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

__all__ = ["TONES", "printed"]

TONES = {"bad": "bold red", "caution": "bold yellow", "good": "green", "plain": "bold"}


def printed(draw: "Callable[[Console], None]", *, width: int, color: bool) -> str:
    r"""Return what is drawn on a console of so many columns, without blanks at the ends of lines.

    Args:
        draw: Prints to the console that it is given.
        width: Columns of the terminal.
        color: Whether to add colour codes.

    >>> printed(lambda console: console.print("one"), width=20, color=False)
    'one\n'
    """
    from rich.console import Console

    buffer = io.StringIO()
    draw(
        Console(
            file=buffer,
            width=width,
            force_terminal=color,
            color_system="standard" if color else None,
            no_color=not color,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
        )
    )
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"
