"""The other end of an XTI endpoint, by plain sockets: xti_peer.py ROLE HOST [PORT].

Servers print their port first. Ends with 0 if all it saw was right, else says what was not.
"""

import asyncio
import select
import socket
import struct
import sys

role, host = sys.argv[1], sys.argv[2]
port = int(sys.argv[3]) if len(sys.argv) > 3 else 0
family = socket.AF_INET6 if ":" in host else socket.AF_INET
BULK = bytes((i * 7 + (i >> 8) * 13 + (i >> 16)) & 255 for i in range(300_000))


def say_port(s):
    print(s.getsockname()[1], flush=True)


def accepted():
    with socket.create_server((host, 0), family=family) as listener:
        say_port(listener)
        return listener.accept()[0]


def connected():
    return socket.create_connection((host, port), timeout=9)


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        assert piece, f"the end after {len(data)} of {n} bytes"
        data += piece
    return data


def echo_server():
    """Echoes until the peer's release, then answers that."""
    with accepted() as s:
        while data := s.recv(10000):
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)


def echo_client():
    """Sends lines of many sizes, each wanted back, then releases and waits for the answer."""
    with connected() as s:
        for n in [1, 10, 100, 1000, 10000, 50000]:
            s.sendall(b"x" * n)
            assert read_exactly(s, n) == b"x" * n
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""


def bulk_client():
    """Sends much, and wants the number of bytes and their sum back."""
    with connected() as s:
        s.sendall(BULK)
        s.shutdown(socket.SHUT_WR)
        answer = s.makefile().readline()
        assert answer == f"{len(BULK)} {sum(BULK)}\n", answer


def bulk_server():
    """Sends much to whoever connects, then releases."""
    with accepted() as s:
        s.sendall(BULK)
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""


def urgent_client():
    """A byte of urgent data among normal data, then the same from the peer."""
    with connected() as s:
        s.sendall(b"before")
        s.send(b"!", socket.MSG_OOB)
        assert read_exactly(s, 5) == b"taken"
        s.sendall(b"after")
        assert read_exactly(s, 6) == b"normal"
        s.settimeout(None)  # or recv waits for normal data
        poll_priority(s)
        assert s.recv(1, socket.MSG_OOB) == b"?"


def poll_priority(s):
    p = select.poll()
    p.register(s, select.POLLPRI)
    assert p.poll(5000), "no urgent data"


def reset_client():
    """Ends by RST."""
    s = connected()
    s.sendall(b"x")
    assert read_exactly(s, 2) == b"ok"
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def asyncio_client():
    """Ten connections at once, each an echo of twenty messages."""

    async def talk(number):
        reader, writer = await asyncio.open_connection(host, port)
        for i in range(20):
            text = f"connection {number} message {i}\n".encode()
            writer.write(text)
            assert await reader.readline() == text
        writer.close()
        await writer.wait_closed()

    async def all_of_them():
        await asyncio.gather(*(talk(i) for i in range(10)))

    asyncio.run(all_of_them())


SIZES = [0, 1, 2, 100, 100, 100, 100, 1472, 1473, 9000, 65507]


def udp_echo():
    """Echoes datagrams until one says so."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind((host, 0))
        say_port(s)
        while True:
            data, peer = s.recvfrom(70000)
            if data == b"end":
                return
            s.sendto(data, peer)


def udp_client():
    """Datagrams of many sizes to an echo; the answers come from where they were sent to."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(9)
        for n in SIZES:
            s.sendto(bytes([n & 255]) * n, (host, port))
            data, peer = s.recvfrom(70000)
            assert data == bytes([n & 255]) * n, (n, len(data))
            assert peer[1] == port
        s.sendto(b"end", (host, port))


def udp_counter():
    """Takes a burst of numbered datagrams of 64 bytes: each by itself, in order."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(9)
        s.bind((host, 0))
        say_port(s)
        for i in range(100):
            data = s.recv(70000)
            assert len(data) == 64, len(data)
            assert int.from_bytes(data[:4], sys.byteorder) == i


def udp_burst():
    """A burst of numbered datagrams of 64 bytes, some at a time."""
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(9)
        for i in range(100):
            s.sendto(i.to_bytes(4, sys.byteorder) + b"f" * 60, (host, port))
            if i % 20 == 19:
                assert s.recv(10) == b"go on"


globals()[role]()
