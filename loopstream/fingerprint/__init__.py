"""Fingerprints: the digests of calls and outcomes that detectors compare.

Data flows ``canonical`` (one text per value) > ``calls`` and ``outcomes`` (which parts of a call or
an outcome count) > digests. Tool kinds have a file each. Everything here is pure: no clock, no IO.
The rules were measured on the reference detector; the profiles differ only in ``profiles``.
"""
