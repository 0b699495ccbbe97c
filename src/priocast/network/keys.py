"""Creates an authority, certificates for members, and keys for groups.

    authority = make_authority("keys")
    make_member_certificate("keys", authority, "alice", ["tickets"])   # for TCP with TLS
    make_member_certificate("keys", authority, "shop", ["tickets"], role=Role.CLIENT)
    make_group_key("keys/tickets.key")                                 # for UDP

The authority's key is only needed to sign: keep it off the hosts that run members. Private files are readable
by their owner only, and are refused if they are not. No file is ever overwritten.
"""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from priocast.core.errors import InvalidOption, UnusableKey
from priocast.core.identity import check_name
from priocast.core.role import Role
from priocast.network.private_files import (
    check_absent,
    read_private,
    replace_private,
    write_private,
    write_public,
)
from priocast.network.security import AnyPath, TlsSecurity, keep_paths, uri_of
from priocast.network.udp_security import GROUP_KEY_BYTES

GROUP_KEYS_MAX = 4
_CLOCKS_APART = timedelta(minutes=5)


class Authority(msgspec.Struct, frozen=True):
    """The PEM files of an authority: its certificate and its key."""

    certificate: Path
    key: Path

    if TYPE_CHECKING:

        def __init__(self, certificate: AnyPath, key: AnyPath) -> None: ...

    def __post_init__(self) -> None:
        keep_paths(self)


def make_authority(directory: AnyPath, *, days: int = 3650) -> Authority:
    """Create an authority: a key, and a certificate with which members verify other members' certificates."""
    authority = Authority(Path(directory, "authority.crt"), Path(directory, "authority.key"))
    check_absent(authority.key, authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Priocast authority")
    builder = _builder(name, name, key.public_key(), datetime.now(UTC), days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    write_private(authority.key, _pem(key))
    write_public(authority.certificate, _certificate_pem(builder.sign(key, hashes.SHA256())))
    return authority


def make_member_certificate(
    directory: AnyPath,
    authority: Authority,
    name: str,
    groups: list[str],
    *,
    role: Role = Role.MEMBER,
    days: int = 365,
    valid_from: datetime | None = None,
) -> TlsSecurity:
    """Create a key, and a certificate that gives a process this role in these groups; return the paths."""
    if not groups:
        raise InvalidOption(f"groups must name at least one group that {name} may be in")
    made = TlsSecurity(Path(directory, f"{name}.crt"), Path(directory, f"{name}.key"), authority.certificate)
    check_absent(made.key, made.certificate)
    signer, signing_key = load_authority(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    uris = [x509.UniformResourceIdentifier(uri_of(group, name, role)) for group in groups]
    builder = _builder(
        _name(check_name(name, role.name.lower())),
        signer.subject,
        key.public_key(),
        valid_from or datetime.now(UTC),
        days,
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)
    both_ways = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(both_ways), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False
    )
    write_private(made.key, _pem(key))
    write_public(made.certificate, _certificate_pem(builder.sign(signing_key, hashes.SHA256())))
    return made


def make_group_key(path: AnyPath) -> bytes:
    """Create the key that the members of a group share over UDP, as hexadecimal digits in a file."""
    key = secrets.token_bytes(GROUP_KEY_BYTES)
    write_private(Path(path), f"{key.hex()}\n".encode())
    return key


def read_group_keys(path: AnyPath) -> tuple[bytes, ...]:
    """Read the keys of a group from a file that `make_group_key` created, one a line.

    The first one seals, all of them open: so a group can change its key while it runs.
    """
    content = read_private(Path(path))
    try:
        keys = tuple(bytes.fromhex(line) for line in content.decode("ascii").split())
    except ValueError as error:
        raise UnusableKey(f"{path} is not a group key: it must contain hexadecimal digits only") from error
    if not 1 <= len(keys) <= GROUP_KEYS_MAX:
        raise UnusableKey(f"{path} must contain 1 to {GROUP_KEYS_MAX} keys, one a line, not {len(keys)}")
    for key in keys:
        if len(key) != GROUP_KEY_BYTES:
            raise UnusableKey(
                f"{path} is not a group key: it must have {GROUP_KEY_BYTES} bytes, not {len(key)}"
            )
    return keys


def rotate_group_key(path: AnyPath, step: str) -> int:
    """Change the keys in a file, and return how many there are now.

    `add`: a new key, which opens only. `use`: the last one becomes the first, which seals. `drop`: all but
    the first. Between two steps, every member must have read the file again.
    """
    keys = list(read_group_keys(path))
    if step == "add" and len(keys) < GROUP_KEYS_MAX:
        keys.append(secrets.token_bytes(GROUP_KEY_BYTES))
    elif step == "use" and len(keys) > 1:
        keys.insert(0, keys.pop())
    elif step == "drop" and len(keys) > 1:
        del keys[1:]
    else:
        raise InvalidOption(f"{path} contains {len(keys)} key(s): it is not the time to {step} one")
    replace_private(Path(path), "".join(f"{key.hex()}\n" for key in keys).encode())
    return len(keys)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid_from: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid_from - _CLOCKS_APART)
        .not_valid_after(valid_from + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def load_authority(authority: Authority) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """The certificate of an authority and its key, which signs."""
    try:
        certificate_content = authority.certificate.read_bytes()
    except OSError as error:
        raise UnusableKey(f"cannot read {error.filename}: {error.strerror or error}") from error
    key_content = read_private(authority.key)
    try:
        certificate = x509.load_pem_x509_certificate(certificate_content)
        key = serialization.load_pem_private_key(key_content, None)
    except (ValueError, TypeError) as error:
        raise UnusableKey(f"{authority.certificate} or {authority.key} is not a valid PEM file") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise UnusableKey(f"{authority.key} is not the key of {authority.certificate}")
    return certificate, key


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
