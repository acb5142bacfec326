"""Recorded runs that come with the package, all invented: see docs/reference/recorded-runs.md."""
