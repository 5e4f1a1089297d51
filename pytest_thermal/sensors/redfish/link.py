"""The way to one Redfish service: a session, one answer at a time, and why there is none in words."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from pytest_thermal.model import Missing
from pytest_thermal.model.said import say
from pytest_thermal.sensors.redfish.address import Address

if TYPE_CHECKING:
    from redfish.rest.v1 import RestResponse

    from pytest_thermal.sensors.redfish.client import Client

ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
ONE_SECONDS = 10.0
"""For one answer."""
_LEAST_SECONDS = 0.1
_WAITS_SECONDS = 5.0
"""As long as a service that is busy (503, 429) may ask us to wait and we do, once; for longer, we come back later."""
_LONGEST_WAIT_SECONDS = 120.0
_MOST_REDIRECTS = 3
_MOST_REFUSALS = 3
"""Of the password, in a row: a controller locks out who goes on trying."""
_NO_SESSIONS = frozenset({404, 405, 501})
_SHOWN = 80


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why there is no answer."""

    missing: Missing
    said: str
    of_all: bool = False
    """Whether nothing else will be answered now either."""


class TroubleError(Exception):
    """There is no answer."""

    def __init__(self, missing: Missing, said: str, *, of_all: bool = False) -> None:
        super().__init__(said)
        self.trouble = Trouble(missing=missing, said=said, of_all=of_all)


class Link:
    """One service, used by one thread. Not a call is made before the first ``get``."""

    def __init__(
        self,
        address: Address,
        *,
        user: str | None,
        password: str,
        make_client: Callable[[], Client],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Args tell whom to ask and as whom.

        Args:
            address: Of the service.
            user: None: it is asked without a session.
            password: Of the user.
            make_client: Makes the client, once.
            clock: Monotonic seconds.
            sleep: Waits for so many seconds.
        """
        self._address = address
        self._user = user
        self._password = password
        self._make_client = make_client
        self._clock = clock
        self._sleep = sleep
        self._client: Client | None = None
        self._logged_in = False
        self._refusals = 0
        self._without_sessions = False
        self._quiet_until = -math.inf

    def get(self, path: str, *, until: float) -> Mapping[str, Any]:
        """The resource at a path, by the clock's ``until``. A session that has ended is begun anew, once.

        Raises:
            TroubleError: There is none.
        """
        if self._clock() < self._quiet_until:
            raise TroubleError(Missing.UNREADABLE, say("the BMC is busy and asked us to come back later"), of_all=True)
        if not self._logged_in:
            self._log_in(until)
        response = self._asked("GET", path, until)
        if response.status == 401 and self._user is not None:
            if not self._without_sessions:
                self._log_in(until)
                response = self._asked("GET", path, until)
            if response.status == 401 and self._without_sessions:
                raise self._refused(response)
        if response.status == 200:
            self._refusals = 0
        return _resource(response, path)

    def close(self) -> None:
        """End the session: a controller has few of them. Never raises."""
        client, self._client = self._client, None
        self._logged_in = False
        if client is not None:
            if not client.get_session_location():
                client.set_session_key(None)
            with contextlib.suppress(Exception):  # it may be gone, and then its session goes too, in time
                client.logout()

    # ------------------------------------------------------------------------------------------------------- session

    def _log_in(self, until: float) -> None:
        client = self._made()
        if self._user is None:
            self._logged_in = True
            return
        if self._refusals >= _MOST_REFUSALS:
            raise TroubleError(
                Missing.UNREADABLE,
                say("user and password were refused {count} times", count=_MOST_REFUSALS),
                of_all=True,
            )
        client.set_session_key(None)
        client.set_authorization_key(None)
        self._logged_in = False
        body = {"UserName": self._user, "Password": self._password}
        response = self._asked("POST", SESSIONS, until, body=body)
        token = response.getheader("X-Auth-Token")
        challenge = str(response.getheader("WWW-Authenticate") or "").casefold()
        self._without_sessions = response.status in _NO_SESSIONS or (response.status == 401 and "basic" in challenge)
        if self._without_sessions:
            # Older and simulated services know no sessions; HTTPS or loopback it is, see Address.is_open.
            client.set_authorization_key(_basic(self._user, self._password))
        elif 200 <= response.status < 300 and token:
            client.set_session_key(token)
            client.set_session_location(response.getheader("Location") or _own_address(response))
        elif response.status in (400, 401, 403):
            raise self._refused(response)
        else:
            message = _message(response)
            said = (
                say("opening a session gave no token{message}", message=message)
                if response.status < 300
                else say(
                    "opening a session was answered by HTTP {status}{message}", status=response.status, message=message
                )
            )
            raise TroubleError(Missing.UNREADABLE, said, of_all=True)
        self._logged_in = True

    def _refused(self, response: RestResponse) -> TroubleError:
        self._refusals += 1
        self._logged_in = False
        said = say(
            "user {user!r} or the password in $REDFISH_PASSWORD is refused (HTTP {status}){message}",
            user=self._user,
            status=response.status,
            message=_message(response),
        )
        return TroubleError(Missing.UNREADABLE, said, of_all=True)

    def _made(self) -> Client:
        if self._client is None:
            self._client = self._make_client()
        return self._client

    # ------------------------------------------------------------------------------------------------------ requests

    def _asked(self, method: str, path: str, until: float, *, body: Mapping[str, str] | None = None) -> RestResponse:
        """An answer that is neither a redirect nor a plea for patience."""
        waited = False
        for _ in range(_MOST_REDIRECTS + 2):
            response = self._once(method, path, until, body)
            if response.status in (429, 503):
                seconds = _retry_after(response)
                if waited or seconds > min(_WAITS_SECONDS, until - self._clock()):
                    self._quiet_until = self._clock() + min(seconds, _LONGEST_WAIT_SECONDS)
                    said = say(
                        "the BMC is busy (HTTP {status}) and asks for {seconds:g} s",
                        status=response.status,
                        seconds=seconds,
                    )
                    raise TroubleError(Missing.UNREADABLE, said, of_all=True)
                waited = True
                self._sleep(seconds)
            elif 300 <= response.status < 400:
                path = self._onward(response)
            else:
                return response
        raise TroubleError(Missing.UNREADABLE, say("{path} sends us in circles", path=path))

    def _onward(self, response: RestResponse) -> str:
        target = str(response.getheader("Location") or "")
        path = self._address.path_of(target)
        if path is None:
            # Whoever is there would get the session.
            raise TroubleError(
                Missing.UNREADABLE,
                say(
                    "sends us on to {target}: not followed; if that is the BMC, redfish_host is to say so",
                    target=target[:_SHOWN] or say("nowhere"),
                ),
                of_all=True,
            )
        return path

    def _once(self, method: str, path: str, until: float, body: Mapping[str, str] | None) -> RestResponse:
        client = self._made()
        left = max(_LEAST_SECONDS, min(ONE_SECONDS, until - self._clock()))
        try:
            if method == "POST":
                return client.post(path, body=dict(body or {}), timeout=left)
            return client.get(path, timeout=left)
        except Exception as error:
            raise self._told(error.__cause__ or error, left) from error

    def _told(self, error: BaseException, seconds: float) -> TroubleError:
        name, text = type(error).__name__, " ".join(str(error).split())
        if "SSL" in name or "CERTIFICATE_VERIFY_FAILED" in text:
            return TroubleError(Missing.UNREADABLE, self._distrust(text), of_all=True)
        if "Timeout" in name or "timed out" in text:
            of_all = "Connect" in name
            said = (
                say("{url} does not take the connection within {seconds:.2g} s", url=self._address.url, seconds=seconds)
                if of_all
                else say("{url} gave no answer within {seconds:.2g} s", url=self._address.url, seconds=seconds)
            )
            return TroubleError(Missing.TIMEOUT, said, of_all=of_all)
        if "Connection" in name:
            reason = next((word for word in _REASONS if word.casefold() in text.casefold()), text[-_SHOWN:])
            return TroubleError(
                Missing.UNREADABLE,
                say("no connection to {url}: {reason}", url=self._address.url, reason=reason),
                of_all=True,
            )
        return TroubleError(Missing.NOT_UNDERSTOOD, f"{name}: {text[:_SHOWN]}")

    def _distrust(self, text: str) -> str:
        url = self._address.url
        if "ostname mismatch" in text or "doesn't match" in text or "not valid for" in text:
            return say(
                "the certificate of {url} is for another name; try: the name that is in it as redfish_host", url=url
            )
        if "expired" in text or "not yet valid" in text:
            return say(
                "the certificate of {url} has expired, or a clock is wrong; try: a new certificate, and the BMC's "
                "clock",
                url=url,
            )
        if "CERTIFICATE_VERIFY_FAILED" in text:
            return say(
                "the certificate of {url} is not trusted (self-signed, or of an issuer unknown here); try: save its "
                "certificate (openssl s_client -connect {host} </dev/null | openssl x509 >bmc.pem), compare its "
                'fingerprint with the one on the BMC\'s own page, then redfish_ca = "bmc.pem"',
                url=url,
                host=f"{self._address.host}:{self._address.port or 443}",
            )
        return say(
            "no TLS with {url}: {error}; try: http:// is for a simulator on loopback only",
            url=url,
            error=text[-_SHOWN:],
        )


_REASONS = (
    "Connection refused", "No route to host", "Network is unreachable", "Name or service not known",
    "Temporary failure in name resolution", "Connection reset", "Connection aborted", "closed connection",
)  # fmt: skip


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _own_address(response: RestResponse) -> str:
    with contextlib.suppress(TroubleError):
        return str(_resource(response, SESSIONS).get("@odata.id", ""))
    return ""


def _resource(response: RestResponse, path: str) -> Mapping[str, Any]:
    status = int(response.status)
    if status != 200:
        if status in (401, 403):
            raise TroubleError(
                Missing.UNREADABLE, say("this user may not read {path} (HTTP {status})", path=path, status=status)
            )
        if status in (404, 410):
            raise TroubleError(Missing.ABSENT, say("{path} is not there (HTTP {status})", path=path, status=status))
        missing = Missing.DEVICE_ERROR if status >= 500 else Missing.NOT_UNDERSTOOD
        said = say("HTTP {status} from {path}{message}", status=status, path=path, message=_message(response))
        raise TroubleError(missing, said)
    text = response.text
    try:
        found = json.loads(text)
    except ValueError:
        shown = " ".join(text[:_SHOWN].split())
        raise TroubleError(Missing.NOT_UNDERSTOOD, say("{path} is no JSON: {text!r}", path=path, text=shown)) from None
    if not isinstance(found, dict):
        raise TroubleError(
            Missing.NOT_UNDERSTOOD, say("{path} is no resource: {text!r}", path=path, text=text[:_SHOWN])
        )
    return found


def _message(response: RestResponse) -> str:
    """What an error says of itself, in its standard form."""
    try:
        error = json.loads(response.text)["error"]
        said = [*(one.get("Message") for one in error.get("@Message.ExtendedInfo", ())), error.get("message")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    text = next((one for one in said if isinstance(one, str) and one.strip()), "")
    return f": {' '.join(text.split())[: 2 * _SHOWN]}" if text else ""


def _retry_after(response: RestResponse) -> float:
    """Seconds that a busy service asks for; 1 where it does not say."""
    text = str(response.getheader("Retry-After") or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        # Its package brings httpx with it, which nobody else here needs.
        from pytest_thermal.transport.dates import http_date  # noqa: PLC0415

        when = http_date(text) if text else None
        seconds = (when - datetime.now(timezone.utc)).total_seconds() if when else 1.0
    return max(0.0, seconds) if math.isfinite(seconds) else _LONGEST_WAIT_SECONDS
