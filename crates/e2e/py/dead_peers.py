"""A server that only waits, and a crowd of its clients: dead_peers.py serve|crowd PORT.

The server is an event loop that ticks ten times a second; `crowd` says "ready" when each of its connections has carried
messages, and waits for its end."""

import selectors
import signal
import socket
import sys

role, port = sys.argv[1], int(sys.argv[2])


def serve():
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    selector = selectors.EpollSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select(0.1):
            conn = key.fileobj
            if conn is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif data := conn.recv(100):
                conn.sendall(data)
            else:
                selector.unregister(conn)
                conn.close()


def crowd():
    conns = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for conn in conns:
        for _ in range(40):
            conn.sendall(b"x")
            assert conn.recv(1) == b"x"
    print("ready", flush=True)
    signal.pause()


{"serve": serve, "crowd": crowd}[role]()
