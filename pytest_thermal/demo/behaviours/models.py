"""Faults of the list of models."""
# ruff: noqa: ARG002

from __future__ import annotations

from dataclasses import replace

from pytest_thermal.demo.call import Call
from pytest_thermal.demo.wire import TEXT, Answer, Json, error_answer, json_answer

from .base import Behaviour, Settings


class ModelsMissing(Behaviour):
    """A gateway that cannot list its models, and chats all the same."""

    def on_models(self, call: Call, listing: Json) -> Answer:
        """404 in JSON."""
        return error_answer(404, f"Invalid URL ({call.method} {call.path})")


class ModelsShape(Behaviour):
    """A list of another shape than OpenAI's."""

    def on_models(self, call: Call, listing: Json) -> Answer:
        """The models, not under `data`."""
        return json_answer({"models": listing["data"]})


class ModelsText(Behaviour):
    """The right list, called plain text."""

    def on_models(self, call: Call, listing: Json) -> Answer:
        """JSON as `text/plain`."""
        return replace(json_answer(listing), media_type=TEXT)


class RouteMissing(Behaviour):
    """The first model has another name than the bench asks for."""

    def settings(self, settings: Settings) -> Settings:
        """`demo-chat` becomes `demo-chat-2`."""
        first, *others = settings.models
        return replace(settings, models=(f"{first}-2", *others))
