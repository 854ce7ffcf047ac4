"""pysctp's classes at work: `python3 pysctp_talk.py FIRST-PORT`. Both ends are in this program."""

import socket
import sys

import sctp

PORT = int(sys.argv[1])
HERE = "127.0.0.1"


def drain(sock, count):
    """So many messages, whatever notifications come between."""
    messages = []
    while len(messages) < count:
        _, flags, data, info = sock.sctp_recv(65536)
        if not flags & sctp.FLAG_NOTIFICATION:
            messages.append((data, info))
    return messages


def event(sock, kind):
    """The next notification of a kind."""
    while True:
        _, flags, _, notification = sock.sctp_recv(65536)
        if flags & sctp.FLAG_NOTIFICATION and isinstance(notification, kind):
            return notification


def one_to_one():
    server = sctp.sctpsocket_tcp(socket.AF_INET)
    server.bind((HERE, PORT))
    server.listen(5)
    client = sctp.sctpsocket_tcp(socket.AF_INET)
    client.initparams.num_ostreams = 5
    client.initparams.max_instreams = 5
    client.events.clear()
    client.events.data_io = 1
    client.connect((HERE, PORT))
    accepted, address = server.accept()
    assert address[0] == HERE and address == client.getsockname(), address
    accepted.events.data_io = 1
    for stream in range(5):
        client.sctp_send(b"on stream %d" % stream, stream=stream, ppid=stream + 100)
    for stream, (data, info) in enumerate(drain(accepted, 5)):
        assert data == b"on stream %d" % stream, data
        assert info.stream == stream, info.stream
    accepted.sctp_send(b"back", stream=0)
    assert drain(client, 1)[0][0] == b"back"
    assert client.getpaddrs() == ((HERE, PORT),), client.getpaddrs()
    assert (HERE, client.getsockname()[1]) in client.getladdrs(), client.getladdrs()
    status = client.get_status()
    assert status.state == status.state_ESTABLISHED and status.outstrms == 5, status.__dict__
    assert client.get_paddrinfo(0, (HERE, PORT)).state == sctp.paddrinfo.state_ACTIVE
    client.close()
    assert accepted.sctp_recv(100)[2] == b""


def options():
    sock = sctp.sctpsocket_udp(socket.AF_INET)
    for name, value in [("nodelay", 1), ("disable_fragments", 1), ("maxseg", 1000), ("autoclose", 7), ("adaptation", 99)]:
        setattr(sock, name, value)
        assert int(getattr(sock, name)) == value, (name, getattr(sock, name))
    rto = sock.get_rtoinfo()
    rto.initial, rto.min, rto.max = 700, 500, 9000
    sock.set_rtoinfo(rto)
    rto = sock.get_rtoinfo()
    assert (rto.initial, rto.min, rto.max) == (700, 500, 9000), rto.__dict__
    params = sock.get_assocparams()
    params.assocmaxrxt = 6
    sock.set_assocparams(params)
    assert sock.get_assocparams().assocmaxrxt == 6
    sock.initparams.num_ostreams = 77
    assert sock.initparams.num_ostreams == 77
    sock.close()


def one_to_many():
    server = sctp.sctpsocket_udp(socket.AF_INET)
    server.bindx([(HERE, PORT + 1), ("127.0.0.2", PORT + 1)])
    server.events.clear()
    server.events.data_io = 1
    server.events.association = 1
    server.events.shutdown = 1
    server.listen(5)
    client = sctp.sctpsocket_udp(socket.AF_INET)
    client.events.clear()
    client.events.association = 1
    client.events.data_io = 1
    # Implicit set-up.
    client.sctp_send(b"hello", to=(HERE, PORT + 1), stream=2, ppid=7)
    up = event(client, sctp.assoc_change)
    assert up.state == up.state_COMM_UP, up.state
    came = event(server, sctp.assoc_change)
    assert came.state == came.state_COMM_UP, came.state
    data, info = drain(server, 1)[0]
    assert data == b"hello" and info.stream == 2, (data, info.stream)
    assert len(server.getladdrs()) == 2, server.getladdrs()
    peeled = server.peeloff(came.assoc_id)
    client.sctp_send(b"to the peeled one", to=(HERE, PORT + 1))
    assert drain(peeled, 1)[0][0] == b"to the peeled one"
    peeled.sctp_send(b"from the peeled one")
    assert drain(client, 1)[0][0] == b"from the peeled one"
    client.sctp_send(b"", to=(HERE, PORT + 1), flags=sctp.MSG_EOF)
    down = event(client, sctp.assoc_change)
    assert down.state == down.state_SHUTDOWN_COMP, down.state
    for sock in (peeled, client, server):
        sock.close()


def connectx():
    server = sctp.sctpsocket_tcp(socket.AF_INET)
    server.bind((HERE, PORT + 2))
    server.listen(5)
    client = sctp.sctpsocket_tcp(socket.AF_INET)
    client.connectx([(HERE, PORT + 2)])
    accepted, _ = server.accept()
    client.sctp_send(b"x" * 60000)
    got = b""
    while len(got) < 60000:
        got += accepted.sctp_recv(65536)[2]
    assert got == b"x" * 60000
    client.close()
    accepted.close()
    server.close()


for part in (one_to_one, options, one_to_many, connectx):
    part()
    print(part.__name__, flush=True)
print("all well")
