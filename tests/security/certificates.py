"""An authority for one test session, and certificates of its own, in PEM as Kafka takes them."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

KEY_PASSWORD = "opens the key"


@dataclass(frozen=True)
class Certificate:
    """Files: the certificate, its key behind `KEY_PASSWORD`, and both in one for a broker."""

    cert: Path
    key: Path
    both: Path


class Authority:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        basic = x509.BasicConstraints(ca=True, path_length=0)
        self._cert = (
            _builder(self._name, self._name, self._key)
            .add_extension(basic, critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.cafile = folder / f"{name}.pem".replace(" ", "-")
        self.cafile.write_bytes(self._cert.public_bytes(Encoding.PEM))

    def issue(self, name: str) -> Certificate:
        """A certificate for a common name, good for loopback servers and for clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        cert = (
            _builder(_name(name), self._name, key)
            .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(issuer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = Certificate(*(self._folder / f"{name}.{kind}" for kind in ("crt", "key", "pem")))
        chain = cert.public_bytes(Encoding.PEM)
        form = PrivateFormat.PKCS8
        locked = BestAvailableEncryption(KEY_PASSWORD.encode())
        files.cert.write_bytes(chain)
        files.key.write_bytes(key.private_bytes(Encoding.PEM, form, locked))
        files.both.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()) + chain)
        return files


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
