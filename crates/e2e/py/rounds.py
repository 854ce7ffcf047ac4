"""serve|call PORT ROUNDS [SECONDS]: bytes back and forth on one connection, which stays open for some seconds after them."""

import errno
import select
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
    s = socket.socket()
    # As programs do that wait for it themselves, and call again for the result.
    s.setblocking(False)
    while s.connect_ex(("127.0.0.1", port)) not in (0, errno.EISCONN):
        select.select([], [s], [])
    s.connect_ex(("127.0.0.1", port))
    s.setblocking(True)
    for _ in range(rounds):
        s.sendall(b"x")
        s.recv(1)
    time.sleep(seconds)
s.close()
