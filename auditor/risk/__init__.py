"""Who is at risk: the audit by group and by loss, and the records most exposed."""
