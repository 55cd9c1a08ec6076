"""Certificates made at start-up: good ones of an authority that nobody trusts, and bad ones."""

import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KINDS = ("good", "self-signed", "expired", "not-yet-valid", "wrong-host")
"""`good` is right in everything but its issuer: trust `Authority.file` and it verifies."""

_NAMES = ("trapline.test", "*.trapline.test", "other.test", "hostile.test", "localhost")
_DAY = timedelta(days=1)


class Authority:
    """A certificate authority that lives as long as the site."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="trapline-site-")
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("Trapline test authority")
        now = datetime.now(UTC)
        self._certificate = (
            _builder(self._name, self._name, self._key, now - _DAY, now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = Path(self._directory.name) / "authority.pem"
        self.file.write_bytes(_pem(self._certificate))

    def close(self) -> None:
        self._directory.cleanup()

    def client_context(self) -> ssl.SSLContext:
        """Return a context that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.file))

    def context(self, kind: str) -> ssl.SSLContext:
        """Return a server's context with that kind of certificate."""
        if kind not in KINDS:
            raise ValueError(f"{kind} is none of {', '.join(KINDS)}")
        key = ec.generate_private_key(ec.SECP256R1())
        return self._context(kind, key, self._certify(kind, key))

    def context_for(self, hosts: Sequence[str]) -> ssl.SSLContext:
        """Return a server's context with a good certificate for these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        certificate = (
            _builder(_name(hosts[0][:64]), self._name, key, now - _DAY, now + 30 * _DAY)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return self._context("hosts", key, certificate)

    def _context(
        self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate
    ) -> ssl.SSLContext:
        path = Path(self._directory.name) / f"{name}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(private + _pem(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _certify(self, kind: str, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
        now = datetime.now(UTC)
        begin, end = {
            "expired": (now - 30 * _DAY, now - _DAY),
            "not-yet-valid": (now + _DAY, now + 30 * _DAY),
        }.get(kind, (now - _DAY, now + 30 * _DAY))
        subject = _name("trapline.test")
        alone = kind == "self-signed"
        return (
            _builder(subject, subject if alone else self._name, key, begin, end)
            .add_extension(x509.SubjectAlternativeName(_alternatives(kind)), critical=False)
            .sign(key if alone else self._key, hashes.SHA256())
        )


def _alternatives(kind: str) -> list[x509.GeneralName]:
    if kind == "wrong-host":
        return [x509.DNSName("somewhere-else.test")]
    return [*map(x509.DNSName, _NAMES), x509.IPAddress(ip_address("127.0.0.1"))]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    begin: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
