"""Runs that a page is made of: one good, one of which much is wrong; and a page taken apart again."""

from __future__ import annotations

import base64
import functools
import html.parser
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_thermal.model import Missing
from pytest_thermal.recording import Event, Labels, MissingStretch, Recording
from pytest_thermal.reporting.run_page import Subject, judged_subject, page_html
from tests.analysis.signals import EPOCH, Floats, Plan
from tests.findings.recordings import (
    CAP,
    GPU,
    HOT,
    PLAN,
    PUMP,
    changed,
    healthy,
    judged,
)

MARKUP = "503 <b onclick=alert(1)>busy</b> </script><script>document.title='owned'</script> & \"so\" on\u2028"
GAP = (900.0, 1100.0)
"""When gpu0's temperature is missing in the faulty run, seconds after the load came on."""


@functools.cache
def good_page() -> str:
    return page_of(healthy())


@functools.cache
def faulty() -> Recording:
    """Pump stopped, gpu0 hot and slowed down, then not read; requests failed with an error that holds markup."""

    def between(low: float, high: float, plan: Plan) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return (plan.times > plan.load_on + low) & (plan.times < plan.load_on + high)

    def hot(values: Floats, plan: Plan) -> Floats:
        return np.where(between(*GAP, plan), np.nan, values + np.where(between(600, 1500, plan), 22.0, 0.0))

    run = changed(healthy(), PUMP, lambda values, plan: np.where(between(600, 1200, plan), 0.0, values))
    run = changed(run, GPU, hot)
    run = changed(run, HOT, lambda _, plan: np.cumsum(np.where(between(700, 1200, plan), 900.0, 0.0)))
    run = changed(run, CAP, lambda _, plan: np.cumsum(np.where(between(300, 2000, plan), 100.0, 0.0)))
    requests = run.requests
    assert requests is not None
    bad = np.random.default_rng(3).random(len(requests)) < 0.08
    requests = replace(
        requests,
        status=np.where(bad, 503, 200),
        error=Labels.of(MARKUP if one else "" for one in bad),
    )
    return replace(
        run,
        requests=requests,
        missing=(
            MissingStretch(
                time_seconds=PLAN.load_on + GAP[0] + 1,
                sensor_id=GPU,
                reason=Missing.TIMEOUT,
                detail="<i>nvidia-smi</i> did not answer in 4 s",
            ),
        ),
        events=(Event(time_seconds=EPOCH + 900, kind="warning", detail={"text": "gpu0 is at 91 °C <img src=x>"}),),
    )


@functools.cache
def faulty_page() -> str:
    return page_of(faulty())


def subject_for(recording: Recording, **more: Any) -> Subject:
    judgement = judged(recording, **more)
    return judged_subject(judgement.recording, judgement.summary())


def page_of(recording: Recording, **more: Any) -> str:
    return page_html(subject_for(recording, **more))


# -------------------------------------------------------------------------------------------------- a page taken apart


class Page(html.parser.HTMLParser):
    """What a browser without JavaScript makes of it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.styles: list[str] = []
        self._inside: list[tuple[str, str]] = []
        self._said: list[str] = []
        self.feed(text)

    @property
    def said(self) -> str:
        """All text that is shown."""
        return re.sub(r"\s+", " ", " ".join(self._said))

    @property
    def data(self) -> dict[str, Any]:
        """What the script is given."""
        data: dict[str, Any] = json.loads(self.scripts["page-data"])
        return data

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style", "title"):
            self._inside.append((tag, dict(attrs).get("id") or f"script{len(self.scripts)}"))

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1][0] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self._said.append(data)
            return
        tag, name = self._inside[-1]
        if tag == "script":
            self.scripts[name] = self.scripts.get(name, "") + data
        elif tag == "style":
            self.styles.append(data)

    def curve(self, sensor: str) -> tuple[Floats, Floats]:
        """Times and values as the script unpacks them."""
        data = self.data
        told = next(one for chart in data["charts"] for one in chart["series"] if one["sensor"] == sensor)
        return unpacked_times(data["bases"][told["base"]], self.scripts), unpacked_values(told, self.scripts)


def unpacked_values(told: Mapping[str, Any], scripts: Mapping[str, str]) -> Floats:
    raw = np.frombuffer(zlib.decompress(base64.b64decode(scripts[told["packed"]])), dtype=np.uint8).astype(np.int64)
    low, high = raw.reshape(2, -1)
    codes = np.cumsum(_straight(low | (high << 8))) & 0xFFFF
    offset, step = float(told["offset"]), float(told["step"])
    return np.where(codes == 65535, np.nan, offset + codes * step)


def unpacked_times(base: Mapping[str, Any], scripts: Mapping[str, str]) -> Floats:
    if "packed" not in base:
        return float(base["first"]) + float(base["step"]) * np.arange(base["count"], dtype=np.float64)
    raw = np.frombuffer(zlib.decompress(base64.b64decode(scripts[base["packed"]])), dtype=np.uint8).astype(np.int64)
    planes = raw.reshape(5, -1)
    turned = sum((planes[plane] << (8 * plane) for plane in range(5)), start=np.zeros(planes.shape[1], dtype=np.int64))
    return np.cumsum(np.cumsum(_straight(turned))).astype(np.float64) / 1000.0


def _straight(turned: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return (turned >> 1) ^ -(turned & 1)
