"""What the workflow tests share: a forge on loopback, real agents, and records made by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class LoopbackForge:
    """A forge on loopback: `keys` maps a user to the lines that it publishes, or to a function of the request."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                user = self.path.removeprefix("/").removesuffix(".keys")
                outer.asked.append(user)
                page = outer.keys.get(user)
                if callable(page):
                    page(self)
                elif page is None:
                    self.send_error(404)
                else:
                    body = page.encode()
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def template(self) -> str:
        """The URL template for `forges:` in a configuration."""
        return f"http://127.0.0.1:{self.http.server_port}/{{user}}.keys"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def forge() -> Iterator[LoopbackForge]:
    """A real HTTP server on loopback that publishes users' keys."""
    made = LoopbackForge()
    yield made
    made.close()
