"""Fingerprints of profile ``extended``: what may leave the runner of a call and its outcome."""
