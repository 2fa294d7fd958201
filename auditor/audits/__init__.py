"""Several audits beside each other: did a release get worse, and which strategy pays for its privacy least."""
