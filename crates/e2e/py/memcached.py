"""Stores values of all sizes from several connections at once and reads them back from others."""

import hashlib
import random
import socket
import sys
import threading

port = int(sys.argv[1])
said = {}


def value(seed, size):
    return random.Random(seed).randbytes(size)


class Client:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(20)
        self.lines = self.socket.makefile("rb")

    def set(self, key, data):
        self.socket.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(data), data))
        assert self.lines.readline() == b"STORED\r\n"

    def get(self, *keys):
        self.socket.sendall(b"get " + b" ".join(keys) + b"\r\n")
        found = {}
        while (line := self.lines.readline()) != b"END\r\n":
            _, key, _, size = line.split()
            found[key] = self.lines.read(int(size) + 2)[:-2]
        return found


def work(n):
    client, rng, digest = Client(), random.Random(n), hashlib.sha256()
    for i in range(150):
        client.set(b"k%d.%d" % (n, i), value(n * 1000 + i, rng.choice([1, 10, 100, 5000, 50000])))
    for i in range(0, 150, 10):
        found = client.get(*[b"k%d.%d" % (n, k) for k in range(i, i + 10)])
        for key in sorted(found):
            digest.update(key + found[key])
    said[n] = digest.hexdigest()


threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for n in sorted(said):
    print(n, said[n])
assert len(said) == 6
