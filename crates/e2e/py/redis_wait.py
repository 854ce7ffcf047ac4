"""Clients that wait for the server: BLPOP and SUBSCRIBE, woken by others."""

import socket
import sys

port = int(sys.argv[1])


class Client:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(20)
        self.lines = self.socket.makefile("rb")
        for _ in range(10):
            assert self.ask("PING") == b"+PONG"

    def send(self, *words):
        text = b"*%d\r\n" % len(words)
        for word in words:
            word = str(word).encode()
            text += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(text)

    def line(self):
        return self.lines.readline().rstrip(b"\r\n")

    def ask(self, *words):
        self.send(*words)
        return self.line()

    def array(self):
        """An array of bulk strings and integers."""
        count = int(self.line()[1:])
        items = []
        for _ in range(count):
            head = self.line()
            items.append(self.line() if head.startswith(b"$") else head)
        return items


waiting, subscribed, busy = [Client() for _ in range(5)], Client(), Client()
subscribed.send("SUBSCRIBE", "news")
print(subscribed.array())
for i in range(50):
    for n, client in enumerate(waiting):
        client.send("BLPOP", f"list{n}", 0)
    for n, client in enumerate(waiting):
        assert busy.ask("RPUSH", f"list{n}", f"item{i}").startswith(b":")
        print(client.array())
    busy.ask("PUBLISH", "news", f"headline {i}")
    print(subscribed.array())
