"""Secrets at rest: addresses encrypted, keys hashed, and a keyed hash to match addresses by.

Never logs, and never keeps more than what it derives from MIDWATCH_SECRET_KEY.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from engine.errors import BadConfig

HINT_LENGTH: Final = 8


class Vault:
    """What is encrypted with one secret key can be read only with the same one."""

    def __init__(self, secret_key: str) -> None:
        # Why derived keys: a fingerprint must tell nothing about the key that encrypts.
        self._fernet = Fernet(base64.urlsafe_b64encode(_derive(secret_key, b"midwatch encryption")))
        self._fingerprint_key = _derive(secret_key, b"midwatch fingerprint")
        self.link_key = _derive(secret_key, b"midwatch answer links")

    def encrypt(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, text: str) -> str:
        try:
            return self._fernet.decrypt(text.encode()).decode()
        except InvalidToken:
            raise BadConfig(
                ["MIDWATCH_SECRET_KEY is not the key this database was written with: set the old one"]
            ) from None

    def fingerprint(self, text: str) -> str:
        """The same for the same address, whatever its case; says nothing without the key."""
        return hmac.new(self._fingerprint_key, text.strip().casefold().encode(), hashlib.sha256).hexdigest()


def hash_key(key: str) -> str:
    """What is stored of a key. Random keys need no salt and no slow hash."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def new_key(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def hint(key: str) -> str:
    """The first characters, so that people can tell keys apart; never more than a third of the key."""
    return key[: min(HINT_LENGTH, len(key) // 3)] + "…"


def _derive(secret_key: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret_key.encode())
