"""Results that allure-pytest has written, told more about once the run is over: pictures, attachments."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Attachment = Mapping[str, str]
"""As it stands in a result: ``name``, ``source`` (a file beside it), ``type``."""


class WrittenResults:
    """The test results of one folder, by their ids. allure-pytest names their files otherwise.

    A file is changed by another one that takes its place: whoever reads meanwhile sees it before or after.
    """

    def __init__(self, folder: Path, wanted: Iterable[str]) -> None:
        self.folder = folder
        wanted = set(wanted)
        self._files: dict[str, Path] = {}
        for file in folder.glob("*-result.json"):
            result = _read(file)
            if result is not None and result.get("uuid") in wanted:
                self._files[str(result["uuid"])] = file

    def attach(self, content: bytes, *, name: str, kind: str, suffix: str) -> Attachment:
        """Write an attachment, which any number of results may then hold."""
        source = f"{uuid.uuid4()}-attachment.{suffix}"
        write_whole(self.folder / source, content)
        return {"name": name, "source": source, "type": kind}

    def attach_to_run(self, content: bytes, *, name: str, kind: str, suffix: str) -> None:
        """Write an attachment of the run itself: Allure shows it beside its results, once."""
        own = uuid.uuid5(
            uuid.NAMESPACE_OID, name
        )  # whoever else writes it, as another of xdist's workers, writes it here
        source = f"{own}-attachment.{suffix}"
        write_whole(self.folder / source, content)
        told = {"name": name, "source": source, "type": kind, "timestamp": int(1000 * time.time())}
        text = json.dumps({"attachments": [told], "errors": []}, ensure_ascii=False)
        write_whole(self.folder / f"{own}-globals.json", text.encode("utf-8"))

    def amend(self, result_id: str, *, description: str, attachments: Iterable[Attachment] = ()) -> bool:
        """Give a result another description, and attachments before those that it has. False where there is no such."""
        file = self._files.get(result_id)
        result = None if file is None else _read(file)
        if file is None or result is None:
            return False
        result["description"] = description
        added = [dict(one) for one in attachments]
        if added:
            result["attachments"] = [*added, *result.get("attachments", [])]
        write_whole(file, json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogateescape"))
        return True


def write_whole(file: Path, content: bytes) -> None:
    """Write a file that is never seen half written."""
    aside = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    aside.write_bytes(content)
    aside.replace(file)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        result = json.loads(file.read_text(encoding="utf-8", errors="surrogateescape"))
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None
