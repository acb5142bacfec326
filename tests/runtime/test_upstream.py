"""The hardening is bound to upstream's source: any change there must be looked at."""

from __future__ import annotations

import pytest

from loopstream.runtime.hardening import upstream


def test_the_installed_upstream_is_the_one_we_know() -> None:
    upstream.check_upstream()


def test_every_watched_method_has_its_digest_and_no_other() -> None:
    assert dict(upstream.fingerprints()) == upstream.SHA256


def test_a_changed_method_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upstream.SHA256, "Recovery._seek_offsets", "0" * 16)
    with pytest.raises(upstream.UpstreamError, match=r"Recovery\._seek_offsets") as caught:
        upstream.check_upstream()
    assert "pinned versions" in str(caught.value)


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upstream.VERSIONS, "faust-streaming", "0.0.1")
    with pytest.raises(upstream.UpstreamError, match=r"faust-streaming .* \(not 0\.0\.1\)"):
        upstream.check_upstream()
