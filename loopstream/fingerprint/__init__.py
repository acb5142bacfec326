"""Fingerprints: the digests of calls and outcomes that detectors compare.

Data flows ``canonical`` (one text per value) > ``calls`` and ``outcomes`` (which parts of a call or
an outcome count) > digests. Tool kinds have a file each. Everything here is pure: no clock, no IO.
The rules were measured on the reference detector; the profiles differ only in ``profiles``.
"""

from loopstream.fingerprint.calls import CallPrint, fingerprint_call, signature
from loopstream.fingerprint.canonical import MISSING, canonical, digest
from loopstream.fingerprint.outcomes import (
    OutcomeKind,
    OutcomePrint,
    fingerprint_outcome,
    parse_result,
    result_text,
)
from loopstream.fingerprint.profiles import DOCUMENTED, REFERENCE

__all__ = [
    "DOCUMENTED",
    "MISSING",
    "REFERENCE",
    "CallPrint",
    "OutcomeKind",
    "OutcomePrint",
    "canonical",
    "digest",
    "fingerprint_call",
    "fingerprint_outcome",
    "parse_result",
    "result_text",
    "signature",
]
