"""The commands of `auditor`, one a module: each parses, calls, writes and returns an exit code; no mathematics."""
