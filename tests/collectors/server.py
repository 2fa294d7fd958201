"""A server on loopback that answers as configured and remembers its requests."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Answers each request by a function of (method, path, body) and remembers all of them."""

    def __init__(self, answer, tls=None):
        self.seen, self.headers, self.answer = [], [], answer
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                """Say nothing."""

            def do_GET(self):
                """Answer without a body."""
                self.reply("GET", None)

            def do_POST(self):
                """Answer a body of JSON, or of CSV as bytes."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.reply("POST", body if self.headers["Content-Type"] == "text/csv" else json.loads(body))

            def reply(self, method, body):
                """Remember the request and send what the function says."""
                with owner._lock:
                    owner.seen.append((method, self.path, body))
                    owner.headers.append(dict(self.headers))
                owner.send(self, owner.answer(method, self.path, body))

        class Quiet(ThreadingHTTPServer):
            daemon_threads, block_on_close, request_queue_size = True, False, 128

            def handle_error(self, *_):
                """Clients that hang up are no news."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.scheme = "http" if tls is None else "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        """Scheme, host and port."""
        return f"{self.scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def posts(self):
        """The bodies of all POST requests, in order of arrival."""
        return [body for method, _, body in self.seen if method == "POST"]

    def send(self, handler, answer):
        """Send (status, headers, body); a body of bytes goes as it is, anything else as JSON."""
        status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(raw)
        if int(headers["Content-Length"]) > len(raw):
            handler.close_connection = True

    def close(self):
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
