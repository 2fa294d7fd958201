"""ML Privacy Meter: its release has no bound on epsilon."""

ABOUT = {
    "name": "ML Privacy Meter",
    "requirements": ("privacy-meter==1.0.1",),
    "claims": "No epsilon.",
    "quote": "",
    "source": "",
    "not_run": "privacy-meter 1.0.1, the release on the package index, computes no epsilon; `get_eps_audit` is in the repository only.",
}
