"""An echo server in many styles: echo_server.py STYLE PORT. Ends on SIGTERM, saying nothing."""

import asyncio
import multiprocessing
import os
import selectors
import signal
import socket
import socketserver
import subprocess
import sys
import threading

style, port = sys.argv[1], int(sys.argv[2])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def listener(reuseport=False):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuseport:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    s.bind(("127.0.0.1", port))
    s.listen(256)
    return s


def echo(conn):
    """Blocking, until the client's end."""
    with conn:
        while data := conn.recv(10000):
            conn.sendall(data)
        conn.shutdown(socket.SHUT_WR)


def with_selector(selector):
    s = listener()
    s.setblocking(False)
    selector.register(s, selectors.EVENT_READ)
    backlog = {}
    while True:
        for key, events in selector.select():
            conn = key.fileobj
            if conn is s:
                conn, _ = s.accept()
                conn.setblocking(False)
                backlog[conn] = bytearray()
                selector.register(conn, selectors.EVENT_READ)
                continue
            waiting = backlog[conn]
            if events & selectors.EVENT_READ:
                data = conn.recv(10000)
                if not data and not waiting:
                    selector.unregister(conn)
                    del backlog[conn]
                    conn.close()
                    continue
                waiting += data
            try:
                del waiting[: conn.send(waiting)]
            except BlockingIOError:
                pass
            interest = selectors.EVENT_WRITE if waiting else 0
            if len(waiting) < 1 << 20:
                interest |= selectors.EVENT_READ
            if interest != key.events:
                selector.modify(conn, interest)


async def with_asyncio():
    async def serve(reader, writer):
        while data := await reader.read(10000):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.close)
    try:
        await server.serve_forever()
    except asyncio.CancelledError:
        pass


def with_threads():
    s = listener()
    while True:
        conn, _ = s.accept()
        threading.Thread(target=echo, args=(conn,), daemon=True).start()


def with_socketserver(kind):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while data := self.rfile.read1(10000):
                self.wfile.write(data)

    class Server(kind):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 256

    Server(("127.0.0.1", port), Handler).serve_forever()


def with_fork():
    """accept in the parent, read in the child; the parent closes its copy or, every third time, keeps it for a while."""
    s, kept, children = listener(), [], []
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        conn, _ = s.accept()
        pid = os.fork()
        if pid == 0:
            s.close()
            echo(conn)
            os._exit(0)
        children.append(pid)
        if len(children) % 3 == 0:
            kept.append(conn)
            if len(kept) > 2:
                kept.pop(0).close()
        else:
            conn.close()
        while children and os.waitpid(-1, os.WNOHANG)[0]:
            children.pop()


def with_late_close():
    """The child has answered some messages when the parent closes its copy, and goes on when it has."""
    s = listener()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        conn, _ = s.accept()
        answered, closed = os.pipe(), os.pipe()
        if os.fork() == 0:
            s.close()
            for _ in range(5):
                conn.sendall(conn.recv(10000))
            os.write(answered[1], b"!")
            assert os.read(closed[0], 1)
            echo(conn)
            os._exit(0)
        assert os.read(answered[0], 1)
        conn.close()
        os.write(closed[1], b"!")
        for end in answered + closed:
            os.close(end)


def with_workers(reuseport):
    """Processes that accept for themselves, on one listener or on one each."""
    s = None if reuseport else listener()
    me = os.getpid()
    workers = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            own = s or listener(reuseport=True)
            while True:
                conn, _ = own.accept()
                echo(conn)
        workers.append(pid)

    def end(*_):
        if os.getpid() == me:
            for pid in workers:
                os.kill(pid, signal.SIGTERM)
            for pid in workers:
                os.waitpid(pid, 0)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    for pid in list(workers):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            pass
    while True:
        signal.pause()


def serve_one(conn):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    echo(conn)


def with_multiprocessing(method):
    """Connections handed to processes: inherited with fork, sent by SCM_RIGHTS with spawn."""
    context = multiprocessing.get_context(method)
    s = listener()
    while True:
        conn, _ = s.accept()
        context.Process(target=serve_one, args=(conn,), daemon=True).start()
        conn.close()


def with_programs():
    """cat, with the connection as its input and output."""
    s = listener()
    running = []
    while True:
        conn, _ = s.accept()
        running.append(subprocess.Popen(["cat"], stdin=conn, stdout=conn))
        conn.close()
        running = [p for p in running if p.poll() is None]


styles = {
    "epoll": lambda: with_selector(selectors.EpollSelector()),
    "poll": lambda: with_selector(selectors.PollSelector()),
    "select": lambda: with_selector(selectors.SelectSelector()),
    "asyncio": lambda: asyncio.run(with_asyncio()),
    "threads": with_threads,
    "threading_server": lambda: with_socketserver(socketserver.ThreadingTCPServer),
    "forking_server": lambda: with_socketserver(socketserver.ForkingTCPServer),
    "fork": with_fork,
    "late_close": with_late_close,
    "workers": lambda: with_workers(False),
    "workers_reuseport": lambda: with_workers(True),
    "multiprocessing": lambda: with_multiprocessing("fork"),
    "spawned": lambda: with_multiprocessing("spawn"),
    "programs": with_programs,
}
if __name__ == "__main__":
    styles[style]()
