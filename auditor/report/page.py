"""Every page's frame: one offline file, escaped, with a policy that lets nothing in and only its own scripts run."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from auditor.report import formatting

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["rendered"]


def rendered(template: str, *, scripts: Sequence[str] = (), **context: Any) -> str:
    """Return a template of this package as a page.

    Args:
        template: Name of a file in ``templates``, which extends ``base.html.jinja``.
        scripts: Inline scripts, each written in this package: nothing from a result may be in one. The page must be
            readable without them.
        context: What the template shows; every text in it is escaped.
    """
    from markupsafe import Markup

    # Written in this package, both: the scripts are allowed by their hashes alone.
    trusted, policy = [Markup(script) for script in scripts], Markup(_policy(scripts))  # noqa: S704
    return _environment().get_template(template).render(policy=policy, scripts=trusted, **context)


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: nothing is loaded, and no script runs but those with these hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{found}'" for found in hashes)
    parts = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*parts, f"script-src {allowed}"] if allowed else parts)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("auditor.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    # Everything that reaches the page passes here; only figures, made in this package, are markup already.
    return formatting.clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
