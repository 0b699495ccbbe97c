"""Certificates over UDP: each pair of processes has keys of its own, so that no member can pose as another.

A process draws an X25519 key for its session, and signs session, key and role with the key of its
certificate. This proof is in its calls, which anybody in the group can open. Two processes that have each
other's proofs derive a key for each direction, and seal everything else with these. Whoever knows only the
group's key can repeat a proof, but has not the key that belongs to it.

    alice                                         bob
      │ ── call: proof of alice ───────────────────▶ │
      │ ◀─ call: proof of bob ────────────────────── │   from here on, under the keys of the pair:
      │ ── challenge A, echo B ────────────────────▶ │   bob knows that alice is alive
      │ ◀─ challenge B, echo A, accepted ─────────── │   alice knows that bob is alive
"""

from collections.abc import Iterable
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from priocast.core.errors import Rejected, UnusableKey
from priocast.core.role import Role
from priocast.network.codec import hash_of
from priocast.network.private_files import read_private
from priocast.network.rejections import Reason
from priocast.network.revocation import TrustCheck
from priocast.network.security import TlsSecurity, check_role, identity_of
from priocast.network.udp_peer import SessionProof
from priocast.network.udp_security import Opener

_PAIRS_MAX = 512
_PAIRS_OF_ONE_MAX = 16  # a process that starts often, or shows ever new sessions to displace those of others
_SIGNED = b"priocast session"
_DERIVED = b"priocast pair"


class OwnCertificate:
    """The certificate of this process, its key, and which certificates of others it trusts.

    `role` is the highest that the process has in any group.
    """

    def __init__(self, security: TlsSecurity, name: str, role: Role) -> None:
        self._security = security
        self._name = name
        self.role = role
        self.reload(())

    def reload(self, groups: Iterable[str]) -> None:
        """Read the files. Raises UnusableKey, and changes nothing, if they cannot be used in these groups."""
        security = self._security
        security.contexts()  # checks that the files belong together, and says which does not
        roles, trust = security.roles_of(self._name), TrustCheck(security)
        for group in groups:
            check_role(roles, group, self._name, self.role)
        certificate = x509.load_pem_x509_certificate(security.certificate.read_bytes())
        key = load_pem_private_key(read_private(security.key), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise UnusableKey(f"{security.key} is not an elliptic curve key: create it with priocast keys")
        self.roles, self.trust, self._key = roles, trust, key
        self.certificate = certificate.public_bytes(Encoding.DER)

    def sign(self, data: bytes) -> bytes:
        """Sign with the key of the certificate."""
        return self._key.sign(data, ec.ECDSA(SHA256()))

    def pair_keys(self, group: str, session: bytes) -> "PairKeys":
        """The keys that a session of this process in a group shares with others."""
        return PairKeys(self, group, session)


class Pair(NamedTuple):
    """What this process shares with one session of a peer: a cipher for each direction.

    `role` is what the peer's `certificate` allows, and the peer claims, in the group.
    """

    seals: AESGCM
    opener: Opener
    role: Role
    certificate: bytes


class PairKeys:
    """The keys that one session shares with others. `proof` is what others need for that."""

    def __init__(self, own: OwnCertificate, group: str, session: bytes) -> None:
        self._own = own
        self._group = group
        self._session = session
        self._key = X25519PrivateKey.generate()
        self._pairs: dict[bytes, Pair] = {}
        self.proof = self._prove()

    def renew(self) -> None:
        """The certificate was read again: sign with it, and forget who is not trusted any more."""
        self.proof = self._prove()
        self._pairs = {
            session: pair for session, pair in self._pairs.items() if self.objection_to(pair) is None
        }

    def objection_to(self, pair: Pair) -> Reason | None:
        """Why the certificate of a peer is not trusted any more; None if it is."""
        return self._own.trust.objection_to(pair.certificate)

    def find(self, session: bytes) -> Pair:
        """What is shared with a session; raises Rejected if it has not shown its proof."""
        pair = self._pairs.get(session)
        if pair is None:
            raise Rejected(Reason.NOT_INTRODUCED, "no proof of this session")
        return pair

    def introduce(self, session: bytes, name: str, proof: SessionProof | None) -> Pair:
        """A peer shows the proof of its session; raises Rejected if it does not hold."""
        if proof is None:
            raise Rejected(Reason.NO_CERTIFICATE, f"{name} has none")
        known = self._pairs.get(session)
        if known is not None and known.certificate == proof.certificate:
            return known
        role = self._check(session, name, proof)
        try:
            shared = self._key.exchange(X25519PublicKey.from_public_bytes(proof.public_key))
        except ValueError as error:
            raise Rejected(Reason.MALFORMED, f"the public key of {name}: {error}") from error
        seals = _derive(shared, self._session, session)
        opener = Opener.of_cipher(_derive(shared, session, self._session))
        self._pairs[session] = pair = Pair(seals, opener, role, proof.certificate)
        of_one = [each for each, kept in self._pairs.items() if kept.certificate == proof.certificate]
        if len(of_one) > _PAIRS_OF_ONE_MAX:
            del self._pairs[of_one[0]]
        elif len(self._pairs) > _PAIRS_MAX:
            del self._pairs[next(iter(self._pairs))]
        return pair

    def _prove(self) -> SessionProof:
        public, role = self._key.public_key().public_bytes_raw(), self._own.role
        signature = self._own.sign(_signed(self._session, public, role))
        return SessionProof(self._own.certificate, public, role, signature)

    def _check(self, session: bytes, name: str, proof: SessionProof) -> Role:
        """The role of the peer in the group."""
        objection, uris, key = _read(proof.certificate, name, self._own.trust)
        if objection is not None:
            raise Rejected(objection, f"{name} shows it")
        identity = identity_of({"subjectAltName": [("URI", uri) for uri in uris]}, name, proof.role)
        role = identity.role_in(hash_of(self._group))
        if role is None:
            raise Rejected(Reason.OTHER_GROUP, f"{name} shows it")
        try:
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise InvalidSignature
            signed = _signed(session, proof.public_key, proof.role)
            key.verify(proof.signature, signed, ec.ECDSA(SHA256()))
        except InvalidSignature:
            raise Rejected(Reason.NOT_AUTHENTIC, f"{name} has not signed its session") from None
        return role


def _read(
    certificate: bytes, name: str, trust: TrustCheck
) -> tuple[Reason | None, list[str], CertificatePublicKeyTypes]:
    """What there is against a certificate, whom it names, and its key.

    Reading what a peer sends as a certificate raises errors of many kinds, some of them neither `ValueError`
    nor documented: an unknown version, key or signature, an extension that occurs twice.
    """
    try:
        found = x509.load_der_x509_certificate(certificate)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        return trust.objection_to(certificate), uris, found.public_key()
    except Exception as error:
        raise Rejected(Reason.UNTRUSTED, f"the certificate of {name}: {error}") from error


def _signed(session: bytes, public_key: bytes, role: Role) -> bytes:
    return _SIGNED + session + public_key + bytes([role])


def _derive(shared: bytes, sender: bytes, receiver: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, None, _DERIVED + sender + receiver).derive(shared))
