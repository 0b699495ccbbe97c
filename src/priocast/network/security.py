"""TLS 1.3 with certificates on both sides, and the groups that a certificate admits its member to.

Addresses and host names are not checked: a member may move. A certificate lists the groups that its member
may be in as URIs among its subject alternative names:

    priocast:tickets/alice
    priocast:telemetry/alice

A process that introduces itself as alice must present such a certificate, signed by the authority. Its frames
are accepted in those groups only.
"""

import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from priocast.core.errors import Rejected, UnusableKey
from priocast.core.identity import check_name
from priocast.network.rejections import Reason

AnyPath = str | os.PathLike[str]

_URI_SCHEME = "priocast:"
_NOT_YET_VALID, _EXPIRED = 9, 10  # OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and _CERT_HAS_EXPIRED
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Reason.NO_CERTIFICATE,
    "UNSUPPORTED_PROTOCOL": Reason.OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": Reason.OLD_TLS,
    "SSLV3_ALERT_BAD_CERTIFICATE": Reason.OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Reason.OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": Reason.OUR_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": Reason.OUR_CERTIFICATE,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": Reason.OUR_CERTIFICATE,
}


class TlsSecurity(msgspec.Struct, frozen=True):
    """The PEM files of a member: its `certificate`, its `key` and the certificate of the `authority`.

    Each is a path, as text or as `pathlib.Path`.
    """

    certificate: Path
    key: Path
    authority: Path

    if TYPE_CHECKING:

        def __init__(self, certificate: AnyPath, key: AnyPath, authority: AnyPath) -> None: ...

    def __post_init__(self) -> None:
        keep_paths(self)

    def contexts(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        """The TLS contexts for accepting and for dialling."""
        accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        accepting.num_tickets = 0  # sessions are never resumed
        dialling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        dialling.check_hostname = False  # the URIs in the certificate are checked instead
        for context in (accepting, dialling):
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.verify_mode = ssl.CERT_REQUIRED
            self._load(context)
        return accepting, dialling

    def groups_of(self, member: str) -> frozenset[str]:
        """The groups that the certificate admits `member` to; it must be valid now and have this name."""
        from cryptography import x509  # only where TLS is used: importing it takes 100 ms

        certificate = x509.load_pem_x509_certificate(_bytes_of(self.certificate))
        if not certificate.not_valid_before_utc <= datetime.now(UTC) <= certificate.not_valid_after_utc:
            raise UnusableKey(
                f"{self.certificate} is valid from {certificate.not_valid_before_utc} to "
                f"{certificate.not_valid_after_utc}, not now: issue a new one, or check the clock"
            )
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            groups = _groups_in(names.get_values_for_type(x509.UniformResourceIdentifier), member)
        except x509.ExtensionNotFound:
            groups = frozenset()
        if not groups:
            raise UnusableKey(
                f"{self.certificate} is not a certificate of {member}: issue one with this name"
            )
        return groups

    def _load(self, context: ssl.SSLContext) -> None:
        for path in (self.certificate, self.key, self.authority):
            _bytes_of(path)
        try:
            context.load_cert_chain(self.certificate, self.key, password="")  # never ask at a terminal
        except ssl.SSLError as error:
            raise UnusableKey(
                f"{self.key} is not the key of {self.certificate}, or one of them is not a PEM file: "
                f"{error.reason}"
            ) from error
        try:
            context.load_verify_locations(self.authority)
        except ssl.SSLError as error:
            raise UnusableKey(
                f"{self.authority} contains no certificate of an authority: {error.reason}"
            ) from error


def keep_paths(files: msgspec.Struct) -> None:
    """Convert the fields of a frozen struct of files to paths."""
    for name in files.__struct_fields__:
        given = getattr(files, name)
        try:
            msgspec.structs.force_setattr(files, name, Path(given))
        except TypeError:
            raise UnusableKey(f"{name} must be the path of a PEM file, not {given!r}") from None


def uri_of(group: str, member: str) -> str:
    """The URI by which a certificate admits this member to this group."""
    return f"{_URI_SCHEME}{check_name(group, 'group')}/{check_name(member, 'member')}"


def peer_groups(certificate: dict[str, Any], member: str) -> frozenset[str]:
    """The groups that a peer's certificate (as `ssl` parses it) admits this member to; at least one."""
    uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    groups = _groups_in(uris, member)
    if not groups:
        raise Rejected(
            Reason.OTHER_MEMBER, f"{member} presented a certificate of {', '.join(uris) or 'nobody'}"
        )
    return groups


def reason_of(error: ssl.SSLError) -> Reason:
    """The reason for a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Reason.OUT_OF_DATE if error.verify_code in {_NOT_YET_VALID, _EXPIRED} else Reason.UNTRUSTED
    return _REASONS.get(error.reason or "", Reason.NOT_TLS)


def _groups_in(uris: list[str], member: str) -> frozenset[str]:
    groups = set()
    for uri in uris:
        scheme, _, names = uri.partition(":")
        group, _, owner = names.partition("/")
        if f"{scheme}:" == _URI_SCHEME and owner == member:
            groups.add(group)
    return frozenset(groups)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error
