"""Gets a connection carried, then overwrites parts of its segment: garbage_client.py PORT SERVER-PID SEED."""

import os
import random
import re
import socket
import sys

port, server, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)


def segments(pid):
    found = []
    for line in open(f"/proc/{pid}/maps"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-s .*memfd:", line)
        if m:
            found.append((int(m[1], 16), int(m[2], 16)))
    return found


before = set(segments(os.getpid()))
conn = socket.create_connection(("127.0.0.1", port))
conn.settimeout(0.3)
for i in range(20):
    conn.sendall(b"x" * 50)
    got = b""
    while len(got) < 50:
        got += conn.recv(50)
ours = [s for s in segments(os.getpid()) if s not in before]
assert ours, "not carried"
start, end = ours[0]
memory = os.open("/proc/self/mem", os.O_RDWR)
# Mostly the words that steer, which stand in the first pages; sometimes the data.
for _ in range(rng.choice([1, 4, 60])):
    size = rng.choice([1, 2, 4, 8])
    at = start + rng.randrange(0, rng.choice([512, 2048, 8192, end - start]) - 8)
    kind = rng.randrange(3)
    value = rng.randbytes(size) if kind == 0 else bytes([rng.choice([0, 255, 1, 127])] * size)
    if kind == 2:
        old = os.pread(memory, size, at)
        value = (int.from_bytes(old, "little") ^ (1 << rng.randrange(8 * size))).to_bytes(size, "little")
    os.pwrite(memory, value, at)
outcomes = []
for i in range(6):
    try:
        conn.sendall(bytes(rng.choice([1, 50, 100000])))
        outcomes.append(len(conn.recv(100000)))
    except OSError as e:
        outcomes.append(type(e).__name__)
conn.close()
print("survived", outcomes)
