"""Bounded HTTP: bodies of limited size and time, waits between tries, links safe to follow."""

from __future__ import annotations

import ipaddress
import math
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult

import httpx

from tropescope.errors import OfflineError
from tropescope.models.openai_answers import PASSING
from tropescope.models.openai_entry import is_loopback

#: No single wait is longer, whatever the server asks for.
LONGEST_WAIT = 120.0
MOST_REDIRECTS = 3
MOST_ADDRESSES = 4

Resolve = Callable[[str, int], Sequence[str]]

_random = random.SystemRandom()


class TooLargeError(Exception):
    """A body is larger than allowed."""


class LinkError(Exception):
    """A link may not be followed, or leads nowhere; trying again would not help."""


class PassingLinkError(Exception):
    """A link could not be fetched now; trying again may help."""


def wait_before_retry(attempt: int, asked: float | None) -> float:
    """Seconds before try number `attempt` + 1: what the server asks, or doubling from one second.

    Jitter keeps parallel requests from coming back all at once. What the server asks for is only
    ever lengthened, unless it exceeds `LONGEST_WAIT`.
    """
    if asked is not None:
        return min(asked, LONGEST_WAIT) * _random.uniform(1.0, 1.1)
    return float(min(2.0**attempt, LONGEST_WAIT)) * _random.uniform(0.5, 1.0)


def retry_after(headers: httpx.Headers, *, now: float) -> float | None:
    """The `Retry-After` header in seconds from now; it may hold seconds or a date."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (TypeError, ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def read_body(response: httpx.Response, *, most_bytes: int, timeout_s: float) -> bytes:
    """The body of a streamed response, as long as it keeps within size and time.

    httpx limits only the time between two pieces; a server that drips a byte now and then would
    hold a thread for ever.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx.RemoteProtocolError("the answer is compressed, which was not asked for")
    deadline = time.monotonic() + timeout_s
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > most_bytes:
            raise TooLargeError(f"the answer has more than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout(f"the answer took longer than {timeout_s:g} s")
    return bytes(body)


def resolve_host(host: str, port: int) -> Sequence[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class LinkFetcher:
    """Fetches images that an API answered with as links.

    https only, except from this machine to this machine. A link (or a redirect, at most three) may
    lead to the API's own host or to a public address, never from a public API into a private
    network. The connection goes to the very address that was checked. No key, no cookies, no proxy.
    """

    def __init__(
        self,
        api: SplitResult,
        *,
        most_bytes: int,
        timeout_s: float,
        offline: bool,
        resolve: Resolve = resolve_host,
    ) -> None:
        self._api_host = (api.hostname or "").lower()
        self._most_bytes = most_bytes
        self._timeout_s = timeout_s
        self._offline = offline
        self._resolve = resolve
        self._client: httpx.Client | None = None
        self._opening = threading.Lock()

    def fetch(self, link: str) -> bytes:
        try:
            url = httpx.URL(link)
            for _ in range(MOST_REDIRECTS + 1):
                found = self._get(url)
                if isinstance(found, bytes):
                    return found
                url = found
        except httpx.InvalidURL:
            raise LinkError("the link is not a web address") from None
        except httpx.TransportError as problem:
            raise PassingLinkError(f"the link cannot be fetched: {describe(problem)}") from None
        raise LinkError(f"the link redirects more than {MOST_REDIRECTS} times")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connected(self) -> httpx.Client:
        """The client, made when the first link comes: most servers never send one."""
        with self._opening:
            if self._client is None:
                self._client = httpx.Client(
                    timeout=self._timeout_s, follow_redirects=False, trust_env=False
                )
            return self._client

    def _get(self, url: httpx.URL) -> bytes | httpx.URL:
        response = self._open(url, self._checked_addresses(url))
        try:
            status = response.status_code
            if response.has_redirect_location:
                return url.join(response.headers["location"])
            if status in PASSING or status >= 500:
                raise PassingLinkError(f"the link answers with HTTP {status}")
            if status != 200:
                raise LinkError(f"the link answers with HTTP {status}")
            return read_body(response, most_bytes=self._most_bytes, timeout_s=self._timeout_s)
        except TooLargeError as problem:
            raise LinkError(f"{problem}, the limit `max_image_bytes`") from None
        finally:
            response.close()

    def _open(self, url: httpx.URL, addresses: Sequence[str]) -> httpx.Response:
        """Connect to the first address that answers.

        Addresses instead of the name: a second look-up could give another answer than the one that
        was checked. The certificate is still checked against the name.
        """
        client = self._connected()
        failure: httpx.TransportError | None = None
        for address in addresses[:MOST_ADDRESSES]:
            request = client.build_request(
                "GET",
                url.copy_with(host=address, username=None, password=None),
                headers={"Host": url.netloc.decode("ascii"), "Accept-Encoding": "identity"},
                extensions={"sni_hostname": url.host},
            )
            try:
                return client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                failure = problem
        raise failure or PassingLinkError(f"the host {url.host} of the link is not known")

    def _checked_addresses(self, url: httpx.URL) -> Sequence[str]:
        host = url.host.lower()
        local = is_loopback(host)
        if url.scheme not in ("http", "https") or not host:
            raise LinkError(f"links of the kind '{url.scheme}:' are not followed")
        if url.scheme == "http" and not local:
            raise LinkError(f"the link to {host} is not https")
        if self._offline and not local:
            raise OfflineError(
                f"the local server answers with a link to {host}, and this run is offline",
                fix="let the server answer with b64_json, or run without --offline",
            )
        if local and not is_loopback(self._api_host):
            raise LinkError(f"the link leads to this machine ({host}), but the API is elsewhere")
        try:
            addresses = self._resolve(host, url.port or (443 if url.scheme == "https" else 80))
        except (OSError, UnicodeError):
            raise PassingLinkError(f"the host {host} of the link is not known") from None
        if not local and host != self._api_host and not all(map(_is_public, addresses)):
            raise LinkError(f"the link leads into a private network ({host})")
        return addresses


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address.sixtofour or address
    return address.is_global and not address.is_multicast


def describe(problem: httpx.TransportError) -> str:
    """What went wrong on the way, in words."""
    if isinstance(problem, httpx.TimeoutException):
        return "no answer in time"
    return str(problem) or type(problem).__name__
