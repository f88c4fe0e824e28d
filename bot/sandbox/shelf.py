"""Files that were uploaded to the sandbox, kept as long as it runs.

Knows nothing of who may upload what where.
"""

from __future__ import annotations

import mimetypes
import secrets
from dataclasses import dataclass

from bot.sandbox.state import Json


@dataclass(slots=True)
class File:
    """`token` is the secret end of the address that takes the bytes."""

    id: str
    token: str
    name: str
    length: int
    alt: str
    data: bytes | None = None
    title: str = ""
    shared: bool = False

    @property
    def kind(self) -> str:
        return mimetypes.guess_type(self.name)[0] or "application/octet-stream"

    def as_json(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": self.kind,
            "size": self.length,
            "alt_txt": self.alt,
            "url_private": f"/files/{self.id}",
        }


class Shelf:
    def __init__(self) -> None:
        self._files: dict[str, File] = {}

    def put(self, file: File) -> None:
        self._files[file.id] = file

    def by_id(self, file_id: str) -> File | None:
        return self._files.get(file_id)

    def by_token(self, token: str) -> File | None:
        known = self._files.values()
        return next((file for file in known if secrets.compare_digest(file.token, token)), None)
