"""The vault: what goes in comes out, with the same key only."""

from __future__ import annotations

import pytest

from engine.errors import BadConfig
from engine.vault import Vault, hash_key, hint, new_key


def test_what_is_encrypted_comes_back_and_never_looks_the_same_twice() -> None:
    """Two encryptions of one number differ, hide it, and both read back."""
    vault = Vault("secret")
    first, second = vault.encrypt("+12025550143"), vault.encrypt("+12025550143")
    assert first != second
    assert "2025550143" not in first
    assert {vault.decrypt(first), vault.decrypt(second)} == {"+12025550143"}


def test_another_key_is_told_apart_in_a_sentence() -> None:
    """Reading with another key names the setting, and shows nothing of the secret."""
    stored = Vault("one").encrypt("+12025550143")
    with pytest.raises(BadConfig, match="MIDWATCH_SECRET_KEY"):
        Vault("two").decrypt(stored)


def test_a_fingerprint_is_the_same_whatever_the_case_and_needs_the_key() -> None:
    """An address matches however it is typed; without the key nobody can try numbers out."""
    vault = Vault("one")
    assert vault.fingerprint(" Ana@Example.com ") == vault.fingerprint("ana@example.com")
    assert vault.fingerprint("ana@example.com") != Vault("two").fingerprint("ana@example.com")
    assert vault.fingerprint("a") != hash_key("a")


def test_keys_are_long_prefixed_and_different() -> None:
    """New keys can be told apart by their prefix and cannot be guessed."""
    keys = {new_key("mwk") for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("mwk_") and len(key) >= 40 for key in keys)


@pytest.mark.parametrize("key", ["demo", "k", "mwk_0123456789abcdef", "x" * 90])
def test_a_hint_shows_at_most_a_third_of_the_key(key: str) -> None:
    """A hint tells keys apart and gives none of them away, short ones neither."""
    shown = hint(key).rstrip("…")
    assert key.startswith(shown)
    assert len(shown) <= len(key) / 3


def test_a_key_with_odd_characters_can_be_hashed() -> None:
    """Lone surrogates from a header are a wrong key, not an error."""
    assert hash_key("\udc80") != hash_key("")
