"""TLS 1.3 with certificates on both sides, and the role that a certificate gives its owner in each group.

Addresses and host names are not checked: a process may move. A certificate lists the groups that its owner
may use as URIs among its subject alternative names, each with a role unless it is that of a member:

    priocast:tickets/alice
    priocast:telemetry/alice?role=client

A process that introduces itself as alice must present such a certificate, signed by the authority. Its frames
are accepted in those groups only, and only those that its role may send. Whoever has a certificate for alice
of another group is another process.
"""

import os
import re
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from priocast.core.errors import Rejected, UnusableKey
from priocast.core.extras import check_installed
from priocast.core.identity import check_name
from priocast.core.role import Role
from priocast.network.codec import hash_of
from priocast.network.private_files import read_private
from priocast.network.rejections import Reason

AnyPath = str | os.PathLike[str]

_URI_SCHEME = "priocast:"
_URI_ROLE = "?role="
_URI = re.compile(rf"{_URI_SCHEME}(?P<group>[^/?]+)/(?P<owner>[^/?]+)(?:{re.escape(_URI_ROLE)}(?P<role>.+))?")
_ROLES: dict[str | None, Role] = {None: Role.MEMBER} | {role.name.lower(): role for role in Role}
_WITH_ARTICLE = {Role.MEMBER: "a member", Role.CLIENT: "a client", Role.OBSERVER: "an observer"}
# OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID, _CERT_HAS_EXPIRED and _CERT_REVOKED; others: not trusted.
_BY_VERIFY_CODE = {9: Reason.OUT_OF_DATE, 10: Reason.OUT_OF_DATE, 23: Reason.REVOKED}
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Reason.NO_CERTIFICATE,
    "UNSUPPORTED_PROTOCOL": Reason.OLD_TLS,
    "TLSV1_ALERT_PROTOCOL_VERSION": Reason.OLD_TLS,
    "SSLV3_ALERT_BAD_CERTIFICATE": Reason.OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": Reason.OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_REVOKED": Reason.OUR_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": Reason.OUR_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": Reason.OUR_CERTIFICATE,
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": Reason.OUR_CERTIFICATE,
}


class TlsSecurity(msgspec.Struct, frozen=True):
    """The PEM files of a process: its `certificate`, its `key` and the certificate of the `authority`.

    `revoked` is a list of certificates that are no longer accepted, signed by the authority. Each is a path,
    as text or as `pathlib.Path`. The files are read at the start, and again by `Node.reload_keys`.
    """

    certificate: Path
    key: Path
    authority: Path
    revoked: Path | None = None

    if TYPE_CHECKING:

        def __init__(
            self, certificate: AnyPath, key: AnyPath, authority: AnyPath, revoked: AnyPath | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        check_installed("cryptography")
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

    def roles_of(self, name: str) -> dict[str, Role]:
        """The role of the process `name` in each of its groups; its certificate must be valid now."""
        from cryptography import x509  # only where TLS is used: importing it takes 100 ms

        certificate = x509.load_pem_x509_certificate(_bytes_of(self.certificate))
        if not certificate.not_valid_before_utc <= datetime.now(UTC) <= certificate.not_valid_after_utc:
            raise UnusableKey(
                f"{self.certificate} is valid from {certificate.not_valid_before_utc} to "
                f"{certificate.not_valid_after_utc}, not now: issue a new one, or check the clock"
            )
        try:
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            roles = _roles_in(names.get_values_for_type(x509.UniformResourceIdentifier), name)
        except x509.ExtensionNotFound:
            roles = {}
        if not roles:
            raise UnusableKey(f"{self.certificate} is not a certificate of {name}: issue one with this name")
        return roles

    def _load(self, context: ssl.SSLContext) -> None:
        for path in (self.certificate, self.authority):
            _bytes_of(path)
        read_private(self.key)
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
        if self.revoked is not None:
            _bytes_of(self.revoked)
            try:
                context.load_verify_locations(self.revoked)
            except ssl.SSLError as error:
                raise UnusableKey(f"{self.revoked} is not a revocation list: {error.reason}") from error
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def keep_paths(files: msgspec.Struct) -> None:
    """Convert the fields of a frozen struct of files to paths."""
    for name in files.__struct_fields__:
        given = getattr(files, name)
        if given is None and name == "revoked":
            continue
        try:
            msgspec.structs.force_setattr(files, name, Path(given))
        except TypeError:
            raise UnusableKey(f"{name} must be the path of a PEM file, not {given!r}") from None


def uri_of(group: str, name: str, role: Role = Role.MEMBER) -> str:
    """The URI by which a certificate gives the process `name` this role in this group."""
    uri = f"{_URI_SCHEME}{check_name(group, 'group')}/{check_name(name, role.name.lower())}"
    return uri if role is Role.MEMBER else f"{uri}{_URI_ROLE}{role.name.lower()}"


class PeerIdentity(NamedTuple):
    """Who a peer is: its name, and its role in each group, by the group's hash, as its certificate says.

    Peers with the same name and other groups are other processes. Without TLS, `roles` is None: the peer is
    in any group what it `claims` to be.
    """

    name: str
    claims: Role
    roles: tuple[tuple[int, Role], ...] | None

    def role_in(self, group_hash: int) -> Role | None:
        """The peer's role in a group; None if it may not be in it."""
        if self.roles is None:
            return self.claims
        return next((role for group, role in self.roles if group == group_hash), None)


def identity_of(certificate: dict[str, Any] | None, name: str, claims: Role) -> PeerIdentity:
    """The identity of a peer by its certificate, as `ssl` parses it; None: without TLS.

    A peer may claim a lower role than its certificate gives it. Raises Rejected if the certificate is that of
    another process.
    """
    if certificate is None:
        return PeerIdentity(name, claims, None)
    uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    roles = _roles_in(uris, name)
    if not roles:
        raise Rejected(
            Reason.OTHER_MEMBER, f"{name} presented a certificate of {', '.join(uris) or 'nobody'}"
        )
    by_hash = sorted((hash_of(group), min(role, claims)) for group, role in roles.items())
    return PeerIdentity(name, claims, tuple(by_hash))


def groups_in(certificate: dict[str, Any] | None, needed: Role) -> set[str]:
    """The groups in which the owner of a certificate, as `ssl` parses it, has at least this role."""
    found = set()
    for kind, uri in (certificate or {}).get("subjectAltName", ()):
        match = _URI.fullmatch(uri) if kind == "URI" else None
        role = _ROLES.get(match["role"]) if match is not None else None
        if match is not None and role is not None and role >= needed:
            found.add(match["group"])
    return found


def check_role(roles: dict[str, Role], group: str, name: str, needed: Role) -> None:
    """Raise UnusableKey if the roles of our certificate do not allow this process to open this group."""
    if group not in roles:
        raise UnusableKey(f"the certificate of {name} does not include group {group!r}: issue one that does")
    if roles[group] < needed:
        raise UnusableKey(
            f"the certificate of {name} is that of {_WITH_ARTICLE[roles[group]]} of group {group!r}, not of "
            f"{_WITH_ARTICLE[needed]}: issue one with priocast keys {needed.name.lower()}"
        )


def reason_of(error: ssl.SSLError) -> Reason:
    """The reason for a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, Reason.UNTRUSTED)
    return _REASONS.get(error.reason or "", Reason.NOT_TLS)


def _roles_in(uris: list[str], name: str) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for uri in uris:
        match = _URI.fullmatch(uri)
        if match is not None and match["owner"] == name:
            role = _ROLES.get(match["role"])
            if role is not None:
                roles[match["group"]] = max(role, roles.get(match["group"], role))
    return roles


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnusableKey(f"cannot read {path}: {error.strerror or error}") from error
