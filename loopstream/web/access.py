"""Who may read, and who may act.

On the loopback everyone of this machine may read. Elsewhere a reader signs in with the token, or
is named by a reverse proxy that is trusted by its address. Acting always takes the token.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

from loopstream.config.tree import WebSettings
from loopstream.errors import SettingsError

MIN_TOKEN: Final = 16
MAX_TOKEN: Final = 4096
SESSION_S: Final = 12 * 3600
_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_FORWARDED: Final = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host")


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who has signed in with the token."""

    nonce: str
    csrf: str
    """What a form of theirs must carry."""


class Access:
    """The rules of one dashboard.

    Raises:
        SettingsError: it would let anyone in, or the token can't be used.
    """

    def __init__(self, settings: WebSettings) -> None:
        token = _token(settings)
        self.local = is_loopback(settings.host)
        self.user_header = settings.user_header
        self._proxies = [ip_network(text.strip()) for text in settings.trusted_proxies.split(",")]
        self._token = None if token is None else _digest(token)
        self._key = None if token is None else _digest(b"loopstream sessions\0" + token)
        if not self.local and token is None and settings.user_header is None:
            raise SettingsError(
                "is not the loopback: the dashboard would be open to anyone who reaches it.",
                where=f"web.host {settings.host}",
                hint="Give --token-file, or --user-header if a reverse proxy signs people in.",
            )

    @property
    def can_act(self) -> bool:
        """Whether there is a token to act with."""
        return self._token is not None

    # -- reading ---------------------------------------------------------------------------

    def is_open(self) -> bool:
        """Whether reading takes no sign-in: on the loopback, with no proxy before it."""
        return self.local and self.user_header is None

    def is_direct(self, host: str, headers: Mapping[str, str]) -> bool:
        """Whether a request to an open dashboard is from this machine's own browser.

        A name that is not the loopback's means that a stranger's page (DNS rebinding) or a proxy
        has come between.
        """
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name.lower() in _NAMES and not any(header in headers for header in _FORWARDED)

    def user(self, peer: str | None, headers: Mapping[str, str]) -> str | None:
        """Whom a trusted proxy names."""
        if self.user_header is None or peer is None or not self._trusts(peer):
            return None
        return headers.get(self.user_header, "").strip()[:100] or None

    def _trusts(self, peer: str) -> bool:
        try:
            address = ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        return any(_holds(network, address) for network in self._proxies)

    # -- acting ----------------------------------------------------------------------------

    def is_token(self, text: str) -> bool:
        """Whether it is the token; takes the same time whatever it is."""
        given = _digest(text.encode("utf-8", "replace")[:MAX_TOKEN])
        return self._token is not None and hmac.compare_digest(given, self._token)

    def issue(self) -> str:
        """A session for a cookie; it holds no secret and outlives a restart."""
        body = f"{int(time.time()) + SESSION_S}.{secrets.token_urlsafe(18)}"
        return f"{body}.{self._sign('session', body)}"

    def session(self, cookie: str | None) -> Session | None:
        """Who a cookie stands for; None if it is forged or has expired."""
        if cookie is None or self._key is None or len(cookie) > 256:
            return None
        body, _, mac = cookie.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._sign("session", body).encode()):
            return None
        expires, _, nonce = body.partition(".")
        if int(expires) < time.time():
            return None
        return Session(nonce, self._sign("csrf", nonce))

    def bearer(self, header: str | None) -> bool:
        """Whether an ``Authorization`` header carries the token."""
        kind, _, token = (header or "").partition(" ")
        return kind.lower() == "bearer" and self.is_token(token.strip())

    def _sign(self, purpose: str, text: str) -> str:
        if self._key is None:
            raise RuntimeError("no token, no sessions")
        return hmac.new(self._key, f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _token(settings: WebSettings) -> bytes | None:
    if settings.token is not None:
        token, where = settings.token.get_secret_value().encode(), "web.token"
    elif settings.token_file is not None:
        token, where = _read(settings.token_file), f"web.token_file {settings.token_file}"
    else:
        return None
    if not MIN_TOKEN <= len(token) <= MAX_TOKEN:
        hint = "Make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
        message = f"a token has {MIN_TOKEN} to {MAX_TOKEN} bytes."
        raise SettingsError(message, where=where, hint=hint)
    return token


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_TOKEN + 2).strip()
    except OSError as error:
        message = f"can't be read: {error.strerror}."
        raise SettingsError(message, where=f"web.token_file {path}") from None


def _holds(network: IPv4Network | IPv6Network, address: object) -> bool:
    return address in network


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
