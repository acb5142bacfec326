"""Where a call is judged, and where it is known beforehand which calls would be refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from loopstream.detect.base import Detector, DetectorName, Finding, Probe
from loopstream.detect.limits import Limits
from loopstream.detect.profiles import UNSEEN, Profile
from loopstream.detect.rollout import Rollout
from loopstream.events.verdict import Level
from loopstream.state.history import History
from loopstream.state.run import Target

Mutes = Sequence[bytes]


def judge(
    profile: Profile,
    history: History,
    limits: Limits,
    tool: str,
    signature: str,
    *,
    poll: bool,
    mutes: Mutes = (),
) -> Finding | None:
    """The one finding that wins for a call: that of the first detector in order that speaks.

    Detectors that are off or in shadow are passed over, and one that only warns does not hide
    what another would refuse.

    Args:
        mutes: what an operator released (`mute_of`); findings about it are passed over.
    """
    if not limits.enabled or profile.quiet(history, limits, signature):
        return None
    probe = _probe(profile, history, limits, tool, signature, poll=poll)
    if limits.rollout is not None:
        return _acted_on(profile, probe, limits.rollout, mutes)
    for detector in profile.detectors:
        finding = _found(detector, probe, mutes)
        if finding is not None:
            return profile.annotate(probe, finding)
    return None


def judge_in_shadow(
    profile: Profile,
    history: History,
    limits: Limits,
    tool: str,
    signature: str,
    *,
    poll: bool,
    mutes: Mutes = (),
) -> Finding | None:
    """What the first detector in shadow that speaks would say; it decides nothing."""
    rollout = limits.rollout
    if rollout is None or not rollout.shadowed or not limits.enabled:
        return None
    if profile.quiet(history, limits, signature):
        return None
    probe = _probe(profile, history, limits, tool, signature, poll=poll)
    for detector in profile.detectors:
        if detector.name in rollout.shadowed:
            finding = _found(detector, probe, mutes)
            if finding is not None:
                return finding
    return None


def forecast(
    profile: Profile, history: History, limits: Limits, mutes: Mutes = ()
) -> dict[Target, Finding]:
    """The calls that would be judged critical if they came next, and by which finding.

    Law: judging a call is critical exactly if one of the targets covers it.
    """
    standing: dict[Target, Finding] = {}
    if not limits.enabled:
        return standing
    # In the order of their names: a history that was packed and restored knows no other.
    for signature in sorted(profile.endangered(history, limits)):
        finding = _critical(profile, history, limits, signature, mutes)
        if finding is not None:
            standing[finding.target] = finding
    for tool in profile.endangered_tools(history, limits):
        finding = judge(profile, history, limits, tool, UNSEEN, poll=False, mutes=mutes)
        if finding is not None and finding.level is Level.CRITICAL:
            standing[_tool_target(profile, history, limits, finding, mutes)] = finding
    return standing


def mute_of(subject: str) -> bytes:
    """What is remembered of a released subject: 16 bytes."""
    return hashlib.sha256(subject.encode("utf-8", "surrogatepass")).digest()[:16]


def _probe(
    profile: Profile, history: History, limits: Limits, tool: str, signature: str, *, poll: bool
) -> Probe:
    stuck = profile.stuck(history, tool, signature)
    call = history.calls.get(signature)
    return Probe(tool, signature, poll, history, limits, call, *stuck)


def _found(detector: Detector, probe: Probe, mutes: Mutes) -> Finding | None:
    """What a detector says, unless an operator released it."""
    finding = detector.find(probe)
    if finding is None or (mutes and mute_of(finding.subject) in mutes):
        return None
    return finding


def _acted_on(profile: Profile, probe: Probe, rollout: Rollout, mutes: Mutes) -> Finding | None:
    capped: Finding | None = None
    for detector in profile.detectors:
        if detector.name in rollout.silent:
            continue
        finding = _found(detector, probe, mutes)
        if finding is None:
            continue
        if finding.level is Level.CRITICAL and detector.name in rollout.capped:
            capped = capped or replace(finding, level=Level.WARNING, capped=True)
        elif finding.level is Level.CRITICAL:
            return finding
        elif capped is None and DetectorName.ARGUMENT_CHURN not in rollout.silent:
            return profile.annotate(probe, finding)
        else:
            return capped or finding
    return capped


def _critical(
    profile: Profile, history: History, limits: Limits, signature: str, mutes: Mutes
) -> Finding | None:
    call = history.calls[signature]
    finding = judge(profile, history, limits, call.tool, signature, poll=call.poll, mutes=mutes)
    return finding if finding is not None and finding.level is Level.CRITICAL else None


def _tool_target(
    profile: Profile, history: History, limits: Limits, finding: Finding, mutes: Mutes
) -> Target:
    """The whole tool where the rule says so, else all of it but the calls that would pass."""
    if finding.target.tool is not None:
        return finding.target
    seen: Iterable[str] = (
        call.signature for call in history.calls.values() if call.tool == finding.tool
    )
    spared = (s for s in seen if _critical(profile, history, limits, s, mutes) is None)
    return Target(tool=finding.tool, exclude=tuple(sorted(spared)))
