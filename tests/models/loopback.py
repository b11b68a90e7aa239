"""An images API on this machine that misbehaves by script."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image


def image_bytes(kind: str = "PNG", *, level: int = 120, side: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((side, side, 3), level, np.uint8)).save(buffer, kind)
    return buffer.getvalue()


@dataclass(frozen=True)
class Reply:
    """One answer. `missing` bytes are promised by Content-Length but never sent."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0
    delay: float = 0.0
    drip: float = 0.0
    """Seconds between single bytes."""
    hang_up: bool = False
    """Close the connection without a word."""


def as_json(data: Any, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps(data).encode()
    return Reply(status, body, {"Content-Type": "application/json", **named})


def picture(data: bytes | None = None, **fields: Any) -> Reply:
    encoded = base64.b64encode(image_bytes() if data is None else data).decode()
    return as_json({"created": 1, "data": [{"b64_json": encoded, **fields}]})


def link(url: str) -> Reply:
    return as_json({"created": 1, "data": [{"url": url}]})


def error(status: int, *, code: str | None = None, message: str = "no", **rest: Any) -> Reply:
    return as_json({"error": {"code": code, "message": message, **rest}}, status)


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that hang up are part of the tests."""


class LoopbackAPI:
    """Answers POSTs from `script`, or from the script of a prompt; then with a picture."""

    def __init__(
        self,
        script: Sequence[Reply] = (),
        *,
        by_prompt: Mapping[str, Sequence[Reply]] | None = None,
        pages: Mapping[str, Sequence[Reply]] | None = None,
    ) -> None:
        self._script = deque(script)
        self._by_prompt = {prompt: deque(replies) for prompt, replies in (by_prompt or {}).items()}
        self._pages = {path: deque(replies) for path, replies in (pages or {}).items()}
        self._lock = threading.Lock()
        self._busy = 0
        self.most_at_once = 0
        self.seen: list[Seen] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(raw)
                api._serve(self, body)

            def do_GET(self) -> None:
                api._serve(self, {})

        self._server = _QuietServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.base_url = self.root + "/v1"

    def __enter__(self) -> LoopbackAPI:
        serve = self._server.serve_forever
        threading.Thread(target=serve, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def posts(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == "POST"]

    def _serve(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        with self._lock:
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.seen.append(Seen(handler.command, handler.path, headers, body))
            reply = self._choose(handler, body)
        try:
            self._send(handler, reply)
        except OSError:
            pass  # the client gave up, as some tests want
        finally:
            with self._lock:
                self._busy -= 1

    def _choose(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> Reply:
        if handler.command == "GET":
            replies = self._pages.get(handler.path)
            return Reply(404) if replies is None else _next(replies)
        if handler.path != "/v1/images/generations":
            return Reply(404)
        own = self._by_prompt.get(body.get("prompt", ""))
        if own is not None:
            return _next(own)
        return self._script.popleft() if self._script else picture()

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        time.sleep(reply.delay)
        if reply.hang_up:
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(reply.body) + reply.missing))
        handler.end_headers()
        if reply.drip:
            for byte in reply.body:
                handler.wfile.write(bytes((byte,)))
                time.sleep(reply.drip)
        handler.wfile.write(reply.body)
        if reply.missing:
            handler.close_connection = True


def _next(replies: deque[Reply]) -> Reply:
    """The next reply; the last one stays."""
    return replies.popleft() if len(replies) > 1 else replies[0]
