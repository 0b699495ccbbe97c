"""Which certificates are trusted now: signed by an authority, valid, and not revoked.

A handshake is checked by `ssl`. A connection outlives its handshake: when the keys are read again, the
certificates of the connections that are open are checked here.

An authority revokes certificates in a list that it signs. Every process reads the list from a file, which has
to be copied to its machine like a certificate.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from priocast.core.errors import UnusableKey
from priocast.network.keys import Authority, load_authority
from priocast.network.private_files import write_public
from priocast.network.rejections import Reason
from priocast.network.security import TlsSecurity

_CLOCKS_APART = timedelta(minutes=5)
_LIST = re.compile(rb"-----BEGIN X509 CRL-----.*?-----END X509 CRL-----", re.DOTALL)


def revoke_certificates(path: Path, authority: Authority, certificates: list[Path]) -> list[int]:
    """Add certificates to the authority's list in a file, which is created if it is missing.

    Returns the serial numbers that the list contains now. Lists of other authorities in the file stay as they
    are. A list is valid for as long as its authority: a process that holds an old one must not stop.
    """
    signer, key = load_authority(authority)
    serials: dict[int, None] = {}
    others = []
    for each in _read_lists(path) if path.exists() else []:
        if each.is_signature_valid(key.public_key()):
            serials |= dict.fromkeys(entry.serial_number for entry in each)
        else:
            others.append(each)
    for file in certificates:
        certificate = _read_certificate(file)
        if not _signed(signer, certificate):
            raise UnusableKey(f"{file} was not issued by {authority.certificate}: it cannot revoke it")
        serials[certificate.serial_number] = None
    written = path.with_name(f"{path.name}.new")
    lists = [*others, _new_list(signer, key, list(serials))]
    write_public(written, b"".join(each.public_bytes(serialization.Encoding.PEM) for each in lists))
    written.replace(path)
    return list(serials)


def _new_list(
    signer: x509.Certificate, key: ec.EllipticCurvePrivateKey, serials: list[int]
) -> x509.CertificateRevocationList:
    since = datetime.now(UTC) - _CLOCKS_APART
    builder = x509.CertificateRevocationListBuilder(signer.subject, since, signer.not_valid_after_utc)
    builder = builder.add_extension(  # authorities may have the same name
        x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
    )
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder(serial, since).build()
        builder = builder.add_revoked_certificate(revoked)
    return builder.sign(key, hashes.SHA256())


def read_revocations(path: Path) -> list[int]:
    """The serial numbers in the revocation lists of a file."""
    return [entry.serial_number for each in _read_lists(path) for entry in each]


def _read_lists(path: Path) -> list[x509.CertificateRevocationList]:
    try:
        blocks = _LIST.findall(path.read_bytes())
        lists = [x509.load_pem_x509_crl(block) for block in blocks]
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError:
        lists = []
    if not lists:
        raise UnusableKey(f"{path} is not a revocation list: create it with priocast keys revoke")
    return lists


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
