"""http.server and http.client in two processes: http_pair.py server|client PORT."""

import hashlib
import http.client
import http.server
import random
import signal
import sys
import urllib.request

role, port = sys.argv[1], int(sys.argv[2])


def body(n):
    return random.Random(n).randbytes(n * 997 % 300000)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(body(int(self.path[1:])))

    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(data).hexdigest().encode())

    def answer(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


if role == "server":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
for n in range(20):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{n}", timeout=20) as answer:
        print(n, hashlib.sha256(answer.read()).hexdigest())
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
for n in range(60):
    connection.request("GET", f"/{n}")
    data = connection.getresponse().read()
    assert data == body(n), n
    connection.request("POST", "/", body(n))
    print(n, hashlib.sha256(data).hexdigest(), connection.getresponse().read().decode())
