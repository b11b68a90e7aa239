"""Models behind an OpenAI-compatible images API.

One request asks for one image. Requests run in threads and every outcome is handed over as soon as
it is there. What passes (busy server, broken answer, timeout) is tried again a bounded number of
times; a refusal is a result; what can never succeed (wrong key, unknown model, spending cap) stops
the run, after the answers that are already paid for have been handed over.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx

from tropescope.errors import ImageError, OfflineError
from tropescope.models.openai_answers import (
    GiveUp,
    Meaning,
    Picture,
    Refused,
    TryAgain,
    UnknownResponseFormat,
    read_answer,
)
from tropescope.models.openai_entry import OpenAIEntry, is_loopback
from tropescope.models.openai_http import (
    LinkError,
    LinkFetcher,
    PassingLinkError,
    Resolve,
    TooLargeError,
    describe,
    read_body,
    resolve_host,
    retry_after,
    wait_before_retry,
)
from tropescope.models.openai_parallel import Stopping, answer_in_parallel
from tropescope.models.openai_spending import NOT_BILLED, Spending
from tropescope.models.protocol import Outcome, PromptProblem, Request
from tropescope.safety.images import decode_image
from tropescope.safety.secrets import Secret, read_secret
from tropescope.version import __version__

#: Documented limits in characters, by the beginning of a model's name.
LONGEST_PROMPTS = {"dall-e-2": 1000, "dall-e-3": 4000, "gpt-image": 32_000}
_LONGEST_REASON = 500
# Room for everything in an answer besides the image.
_ENVELOPE_BYTES = 1_000_000


class OpenAIImages:
    """`TextToImage` over HTTP. `sleep`, `now`, `resolve` and `environment` are there for tests."""

    batch_matters = False

    def __init__(
        self,
        entry: OpenAIEntry,
        *,
        offline: bool = False,
        spent_before: float = 0.0,
        sleep: Callable[[float], None] | None = None,
        now: Callable[[], float] = time.time,
        resolve: Resolve = resolve_host,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._entry = entry
        self._offline = offline
        self._sleep = sleep
        self._now = now
        # A function, not the mapping: the environment holds keys and must not show in a repr.
        self._read_secret: Callable[[str], Secret] = lambda variable: read_secret(
            variable, environment=environment
        )
        self._secret: Secret | None = None
        self._client: httpx.Client | None = None
        self._links = LinkFetcher(
            entry.address,
            most_bytes=entry.max_image_bytes,
            timeout_s=entry.timeout_s,
            offline=offline,
            resolve=resolve,
        )
        self._ask_for_base64 = True
        self._spending = Spending(
            price=entry.price_per_image,
            cap=entry.spend_cap,
            currency=entry.currency,
            spent_before=spent_before,
        )

    def __repr__(self) -> str:
        return f"OpenAIImages({self._entry.id!r} at {self._entry.address.netloc})"

    def identity(self) -> dict[str, Any]:
        address = self._entry.address
        return {
            "adapter": "openai",
            "host": address.netloc.lower(),
            "path": address.path,
            "id": self._entry.id,
            "size": self._entry.size,
            "call": self._entry.call,
            "send_seed": self._entry.send_seed,
        }

    def check_prompts(self, prompts: Sequence[str]) -> list[PromptProblem]:
        most = next(
            (n for start, n in LONGEST_PROMPTS.items() if self._entry.id.startswith(start)), None
        )
        problems = []
        for prompt in prompts:
            if not prompt.strip():
                problems.append(PromptProblem(prompt, "error", "the prompt is empty"))
            elif most is not None and len(prompt) > most:
                message = f"{len(prompt):,} characters; {self._entry.id} reads at most {most:,}"
                problems.append(PromptProblem(prompt, "error", message))
        return problems

    def estimated_cost(self, n_images: int) -> tuple[float, str] | None:
        """What that many images cost if nothing has to be asked twice, and the currency."""
        if self._entry.price_per_image is None:
            return None
        return n_images * self._entry.price_per_image, self._entry.currency

    def add_prior_spend(self, amount: float) -> None:
        """Count what earlier runs on the same folder have spent against the cap."""
        self._spending.add_before(amount)

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "httpx": httpx.__version__,
            "requests_sent": self._spending.requests_sent,
            "concurrency": self._entry.concurrency,
        }
        if self._entry.price_per_image is not None:
            facts |= {"spent": self._spending.spent, "currency": self._entry.currency}
        return facts

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self._links.close()

    def generate(self, requests: Sequence[Request]) -> Iterator[tuple[Request, Outcome]]:
        self._connect()
        yield from answer_in_parallel(requests, self._answer, threads=self._entry.concurrency)

    def _connect(self) -> None:
        entry = self._entry
        local = is_loopback(entry.address.hostname or "")
        if self._offline and not local:
            raise OfflineError(
                f"{entry.id} at {entry.address.hostname} cannot be asked: this run is offline",
                fix="run without --offline, or use a server on this machine",
            )
        if entry.api_key_env is not None and self._secret is None:
            self._secret = self._read_secret(entry.api_key_env)
        if self._client is None:
            self._client = httpx.Client(
                timeout=httpx.Timeout(entry.timeout_s, pool=None),
                limits=httpx.Limits(max_connections=entry.concurrency),
                follow_redirects=False,
                # A proxy named in the environment must not see what is meant for this machine.
                trust_env=not local,
                headers={
                    "User-Agent": f"tropescope/{__version__}",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "Content-Type": "application/json",
                },
            )

    def _answer(self, request: Request, stopping: Stopping) -> Outcome | None:
        """The outcome of one request, or None when the run was stopped first."""
        stop = stopping.no_more_requests
        reason = ""
        asked: float | None = None
        for attempt in range(self._entry.retries + 1):
            if attempt and not self._pause(wait_before_retry(attempt - 1, asked), stop):
                return None
            meaning, asked = self._ask(request, stop)
            if isinstance(meaning, UnknownResponseFormat):
                self._ask_for_base64 = False
                meaning, asked = self._ask(request, stop)
            match meaning:
                case None:
                    return None
                case Picture():
                    return self._deliver(meaning, stopping.abandoned)
                case Refused():
                    revised = self._redact(meaning.revised_prompt)
                    return Outcome("refused", reason=meaning.reason, revised_prompt=revised)
                case GiveUp():
                    return Outcome("failed", reason=meaning.reason)
                case TryAgain():
                    reason = meaning.reason
                case UnknownResponseFormat():
                    return Outcome("failed", reason="the server refuses `response_format`")
        return Outcome("failed", reason=f"{reason} (asked {self._entry.retries + 1} times)")

    def _ask(self, request: Request, stop: threading.Event) -> tuple[Meaning | None, float | None]:
        """Send one request. Also returns how long the server asks to wait before another."""
        if not self._spending.reserve(stop):
            return None, None
        billed = True
        try:
            status, headers, body = self._post(request)
            billed = status not in NOT_BILLED
            meaning = read_answer(
                status,
                body,
                model=self._entry.id,
                key_variable=self._entry.api_key_env,
                clean=self._clean,
            )
            billed = billed or isinstance(meaning, Refused)
            return meaning, retry_after(headers, now=self._now())
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as problem:
            billed = False
            return TryAgain(self._clean(f"no connection: {describe(problem)}")), None
        except httpx.TransportError as problem:
            return TryAgain(self._clean(describe(problem))), None
        except TooLargeError as problem:
            return GiveUp(f"{problem}; raise `max_image_bytes` if that is right"), None
        finally:
            self._spending.settle(billed=billed)

    def _post(self, request: Request) -> tuple[int, httpx.Headers, bytes]:
        assert self._client is not None
        fields: dict[str, Any] = {
            "model": self._entry.id,
            "prompt": request.prompt,
            "n": 1,
            "size": self._entry.size,
            **self._entry.call,
        }
        if self._entry.send_seed:
            fields["seed"] = request.seed
        if self._ask_for_base64:
            fields["response_format"] = "b64_json"
        auth = None if self._secret is None else _BearerKey(self._secret)
        url = f"{self._entry.base_url}/images/generations"
        content = json.dumps(fields).encode()
        most = self._entry.max_image_bytes * 4 // 3 + _ENVELOPE_BYTES
        with self._client.stream("POST", url, content=content, auth=auth) as response:
            body = read_body(response, most_bytes=most, timeout_s=self._entry.timeout_s)
            return response.status_code, response.headers, body

    def _deliver(self, picture: Picture, abandoned: threading.Event) -> Outcome | None:
        """The image itself. It is paid for: only its download is tried again."""
        revised = self._redact(picture.revised_prompt)
        try:
            data = self._fetch(picture.url, abandoned) if picture.url else _unpack(picture.base64)
            if data is None:
                return None
        except (LinkError, PassingLinkError) as problem:
            return Outcome("failed", reason=self._clean(str(problem)), revised_prompt=revised)
        except (binascii.Error, ValueError):
            return Outcome(
                "invalid", reason="the image is not valid base64", revised_prompt=revised
            )
        if len(data) > self._entry.max_image_bytes:
            reason = f"the image has {len(data):,} bytes; raise `max_image_bytes` if that is right"
            return Outcome("failed", reason=reason, revised_prompt=revised)
        try:
            image = decode_image(data, name="answer of the API")
        except ImageError as problem:
            return Outcome("invalid", reason=self._clean(problem.message), revised_prompt=revised)
        return Outcome(
            "generated",
            pixels=image.pixels,
            encoded=data,
            suffix=image.suffix,
            revised_prompt=revised,
        )

    def _fetch(self, url: str, stop: threading.Event) -> bytes | None:
        for attempt in range(self._entry.retries + 1):
            if attempt and not self._pause(wait_before_retry(attempt - 1, None), stop):
                return None
            try:
                return self._links.fetch(url)
            except PassingLinkError:
                if attempt == self._entry.retries:
                    raise
        return None

    def _pause(self, seconds: float, stop: threading.Event) -> bool:
        """Wait; False when the run was stopped meanwhile."""
        if self._sleep is None:
            stop.wait(seconds)
        else:
            self._sleep(seconds)
        return not stop.is_set()

    def _redact(self, text: str) -> str:
        # JSON can hold half a surrogate pair, which no file can.
        text = text.encode("utf-8", "replace").decode()
        return text if self._secret is None else self._secret.redact(text)

    def _clean(self, text: str) -> str:
        """A server's text as it may be shown and stored: no key, one line, not long."""
        shown = (letter if letter.isprintable() else " " for letter in self._redact(text))
        line = " ".join("".join(shown).split())
        return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


class _BearerKey(httpx.Auth):
    """Adds the key to one request, so that it stands in no client and no local variable."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._secret.reveal()}"
        yield request


def _unpack(text: str) -> bytes:
    """Base64 with what servers put around it: a `data:` prefix, line breaks."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    return base64.b64decode("".join(text.split()), validate=True)
