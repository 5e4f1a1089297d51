"""Asking a Prometheus server: one client, one query a request."""

from __future__ import annotations

from collections.abc import Mapping

import httpx
from pydantic import SecretStr

from pytest_thermal.bench.files import PROMETHEUS_PASSWORD, PROMETHEUS_TOKEN
from pytest_thermal.model import Missing
from pytest_thermal.model.said import say
from pytest_thermal.sensors.prometheus.answer import Answered, read_answer
from pytest_thermal.sensors.tools.answer import Problem
from pytest_thermal.transport import Exchange, client, exchange, unsendable

_CONNECT_SECONDS = 3.0
_READ_SECONDS = 6.0
_TOTAL_SECONDS = 8.0
_METHOD_NOT_ALLOWED = 405


class Server:
    """A Prometheus, or what answers as it does, at ``url``."""

    def __init__(self, url: str, *, user: str | None, environ: Mapping[str, str]) -> None:
        """The client is made at the first query.

        Args:
            url: Up to where ``/api/v1/query`` begins.
            user: Whose password is in $PROMETHEUS_PASSWORD; without one, $PROMETHEUS_TOKEN is sent where it is set.
            environ: Where these are, and the proxies.
        """
        self.url = url.rstrip("/")
        self._user = user
        self._environ = environ
        self._client: httpx.Client | None = None
        self._method = "POST"

    def unfit(self) -> str:
        """Why it cannot be asked at all; empty where it can."""
        if self._user:
            return (
                "" if self._environ.get(PROMETHEUS_PASSWORD)
                else say("${name} is not set, and prometheus_user wants a password", name=PROMETHEUS_PASSWORD)
            )  # fmt: skip
        token = self._environ.get(PROMETHEUS_TOKEN)
        why = unsendable(SecretStr(token)) if token else None
        return say("${name} cannot be sent: {why}", name=PROMETHEUS_TOKEN, why=why) if why else ""

    def ask(self, query: str) -> Answered:
        """What it answers to an instant query, now."""
        try:
            found = self._made()
        except (OSError, ValueError, ImportError) as error:
            return Answered(
                problem=Problem(
                    missing=Missing.UNREADABLE, said=say("no client for {url}: {error}", url=self.url, error=error)
                )
            )
        answer = self._exchange(found, query)
        if answer.status == _METHOD_NOT_ALLOWED:
            # Some of what stands in front of a Prometheus lets only GET through.
            self._method = "GET" if self._method == "POST" else "POST"
            answer = self._exchange(found, query)
        return read_answer(answer)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _exchange(self, found: httpx.Client, query: str) -> Exchange:
        fields = {"query": query}
        return exchange(
            found,
            self._method,
            "/api/v1/query",
            form=fields if self._method == "POST" else None,
            query=fields if self._method == "GET" else None,
            read_seconds=_READ_SECONDS,
            total_seconds=_TOTAL_SECONDS,
        )

    def _made(self) -> httpx.Client:
        if self._client is None:
            token = self._environ.get(PROMETHEUS_TOKEN)
            self._client = client(
                base_url=self.url,
                key=SecretStr(token) if token and not self._user else None,
                connect_seconds=_CONNECT_SECONDS,
                read_seconds=_READ_SECONDS,
                environ=self._environ,
            )
            if self._user:
                self._client.auth = httpx.BasicAuth(self._user, self._environ.get(PROMETHEUS_PASSWORD, ""))
        return self._client
