"""Which certificates are trusted now: signed by an authority, valid, and not revoked.

A handshake is checked by `ssl`. A connection outlives its handshake: when the keys are read again, the
certificates of the connections that are open are checked here.

An authority revokes certificates in a list that it signs. Every process reads the list from a file, which has
to be copied to its machine like a certificate.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization

from priocast.core.errors import UnusableKey
from priocast.network.keys import Authority, load_authority
from priocast.network.rejections import Reason
from priocast.network.security import TlsSecurity

_CLOCKS_APART = timedelta(minutes=5)


def revoke_certificates(path: Path, authority: Authority, certificates: list[Path]) -> list[int]:
    """Add certificates to the revocation list in a file, which is created if it is missing.

    Returns the serial numbers that the list contains now. The list is valid for as long as the authority: a
    process that holds an old one must not stop.
    """
    signer, key = load_authority(authority)
    serials = dict.fromkeys(read_revocations(path) if path.exists() else [])
    for each in certificates:
        certificate = _read_certificate(each)
        if certificate.issuer != signer.subject:
            raise UnusableKey(f"{each} was not issued by {authority.certificate}: it cannot revoke it")
        serials[certificate.serial_number] = None
    now = datetime.now(UTC)
    builder = x509.CertificateRevocationListBuilder(
        signer.subject, now - _CLOCKS_APART, signer.not_valid_after_utc
    )
    for serial in serials:
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder(serial, now - _CLOCKS_APART).build()
        )
    written = path.with_name(f"{path.name}.new")
    written.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    written.replace(path)
    return list(serials)


def read_revocations(path: Path) -> list[int]:
    """The serial numbers in a revocation list."""
    try:
        revoked = x509.load_pem_x509_crl(path.read_bytes())
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UnusableKey(f"{path} is not a revocation list: create it with priocast keys revoke") from error
    return [entry.serial_number for entry in revoked]


class TrustCheck:
    """Checks certificates against the authority and the revocation list as their files are now."""

    def __init__(self, security: TlsSecurity) -> None:
        try:
            self._authorities = x509.load_pem_x509_certificates(security.authority.read_bytes())
        except (OSError, ValueError) as error:
            raise UnusableKey(f"{security.authority} contains no certificate of an authority") from error
        self._revoked = frozenset(read_revocations(security.revoked) if security.revoked else ())

    def objection_to(self, certificate: bytes) -> Reason | None:
        """Why a certificate, as DER, is not trusted; None if it is."""
        found = x509.load_der_x509_certificate(certificate)
        if found.serial_number in self._revoked:
            return Reason.REVOKED
        if not any(_signed(authority, found) for authority in self._authorities):
            return Reason.UNTRUSTED
        now = datetime.now(UTC)
        return None if found.not_valid_before_utc <= now <= found.not_valid_after_utc else Reason.OUT_OF_DATE


def _signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UnusableKey(f"{path} is not a certificate") from error
