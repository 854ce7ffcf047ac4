"""serve|call PORT ROUNDS [SECONDS]: bytes back and forth on one connection, which stays open for some seconds after them."""

import socket
import sys
import time

side, port, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 0
if side == "serve":
    listener = socket.create_server(("127.0.0.1", port))
    s, _ = listener.accept()
    for _ in range(rounds):
        s.sendall(s.recv(1))
    s.recv(1)
else:
    s = socket.create_connection(("127.0.0.1", port))
    for _ in range(rounds):
        s.sendall(b"x")
        s.recv(1)
    time.sleep(seconds)
s.close()
