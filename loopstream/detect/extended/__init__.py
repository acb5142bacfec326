"""Detectors of profile ``extended``: one file each, and the registry."""
