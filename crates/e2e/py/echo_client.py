"""A client of an echo server in many styles: echo_client.py STYLE PORT. Says hashes of what came back."""

import asyncio
import hashlib
import random
import selectors
import socket
import sys
import threading

style, port = sys.argv[1], int(sys.argv[2])
CLIENTS, ROUNDS = 6, 40


def message(n, i):
    rng = random.Random(n * 1000 + i)
    return rng.randbytes(rng.choice([1, 70, 1000, 20000]))


def bulk(n):
    return random.Random(n).randbytes(1 << 20)


def rest(n):
    """What is sent right before the half-close. An answer to a half-closed end goes by TCP, so the bulk is read first."""
    return random.Random(100 + n).randbytes(50000)


def read_exactly(conn, size):
    parts = []
    while size:
        data = conn.recv(min(size, 1 << 16))
        assert data, "early end"
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def blocking(n, timeout=None):
    digest = hashlib.sha256()
    conn = socket.create_connection(("127.0.0.1", port))
    conn.settimeout(timeout)
    for i in range(ROUNDS):
        m = message(n, i)
        conn.sendall(m)
        back = read_exactly(conn, len(m))
        assert back == m, (n, i)
        digest.update(back)
    # A bulk of data that is read while it is written; then a half-close before the last answer is read.
    writer = threading.Thread(target=lambda: conn.sendall(bulk(n)))
    writer.start()
    digest.update(read_exactly(conn, 1 << 20))
    writer.join()
    conn.sendall(rest(n))
    conn.shutdown(socket.SHUT_WR)
    size = 0
    while data := conn.recv(65536):
        digest.update(data)
        size += len(data)
    conn.close()
    return size, digest.hexdigest()


def with_threads(timeout):
    results = [None] * CLIENTS

    def work(n):
        results[n] = blocking(n, timeout)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


async def with_asyncio():
    async def work(n):
        digest = hashlib.sha256()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for i in range(ROUNDS):
            m = message(n, i)
            writer.write(m)
            back = await reader.readexactly(len(m))
            assert back == m, (n, i)
            digest.update(back)

        async def pour():
            writer.write(bulk(n))
            await writer.drain()

        task = asyncio.ensure_future(pour())
        digest.update(await reader.readexactly(1 << 20))
        await task
        writer.write(rest(n))
        writer.write_eof()
        size = 0
        while data := await reader.read(65536):
            digest.update(data)
            size += len(data)
        writer.close()
        await writer.wait_closed()
        return size, digest.hexdigest()

    return await asyncio.gather(*[work(n) for n in range(CLIENTS)])


def with_selector(selector):
    """Non-blocking, with connect in progress."""
    results = [None] * CLIENTS
    state = {}
    for n in range(CLIENTS):
        conn = socket.socket()
        conn.setblocking(False)
        conn.connect_ex(("127.0.0.1", port))
        messages = [message(n, i) for i in range(ROUNDS)] + [bulk(n), rest(n)]
        state[conn] = [n, b"", 0, messages, hashlib.sha256(), 0]
        selector.register(conn, selectors.EVENT_WRITE)
    while state:
        for key, events in selector.select(20):
            conn = key.fileobj
            s = state[conn]
            n, out, due, messages, digest, size = s
            if not out and not due and messages:
                out = messages.pop(0)
                due = len(out)
            if out and events & selectors.EVENT_WRITE:
                out = out[conn.send(out) :]
                if not out and not messages:
                    conn.shutdown(socket.SHUT_WR)
            if events & selectors.EVENT_READ:
                data = conn.recv(50000)
                digest.update(data)
                size += len(data)
                due -= len(data)
                if not data:
                    selector.unregister(conn)
                    del state[conn]
                    conn.close()
                    results[n] = size, digest.hexdigest()
                    continue
            s[1], s[2], s[5] = out, due, size
            wanted = selectors.EVENT_READ
            if out or (not due and messages):
                wanted |= selectors.EVENT_WRITE
            if wanted != key.events:
                selector.modify(conn, wanted)
    return results


styles = {
    "serial": lambda: [blocking(n) for n in range(CLIENTS)],
    "threads": lambda: with_threads(None),
    "timeouts": lambda: with_threads(20),
    "asyncio": lambda: asyncio.run(with_asyncio()),
    "epoll": lambda: with_selector(selectors.EpollSelector()),
    "poll": lambda: with_selector(selectors.PollSelector()),
    "select": lambda: with_selector(selectors.SelectSelector()),
}
for result in styles[style]():
    print(*result)
