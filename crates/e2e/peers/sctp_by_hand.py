"""Speaks SCTP to an echo server packet by packet, over UDP encapsulation: sctp_by_hand.py ADDRESS UDP-PORT SCTP-PORT.

Each step sends what scapy wrote and looks at what scapy read; the first surprise ends it with a failure.
"""
import socket
import struct
import sys

from scapy.layers.sctp import (
    SCTP,
    SCTPChunkAbort,
    SCTPChunkCookieAck,
    SCTPChunkCookieEcho,
    SCTPChunkData,
    SCTPChunkError,
    SCTPChunkHeartbeatAck,
    SCTPChunkInit,
    SCTPChunkInitAck,
    SCTPChunkParamStateCookie,
    SCTPChunkSACK,
    SCTPChunkShutdown,
    SCTPChunkShutdownAck,
    SCTPChunkShutdownComplete,
)
from scapy.packet import Raw

TABLE = []
for number in range(256):
    for _ in range(8):
        number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
    TABLE.append(number)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Peer:
    def __init__(self, address, udp_port, port, own_port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(2)
        self.to = (address, udp_port)
        self.port, self.own_port = port, own_port
        self.tag, self.own_tag = 0, 0x5CA9_0000 + own_port
        self.tsn = 0xFFFF_FFFE

    def send(self, *chunks, tag=None, spoil=False):
        packet = SCTP(sport=self.own_port, dport=self.port, tag=self.tag if tag is None else tag, chksum=0)
        for chunk in chunks:
            packet /= chunk
        data = bytearray(bytes(packet))
        data[8:12] = struct.pack("<I", crc32c(bytes(data)))
        if spoil:
            data[8] ^= 1
        self.socket.sendto(bytes(data), self.to)

    def receive(self, *kinds):
        """The first chunk of one of these kinds; all packets have the right tag and checksum."""
        while True:
            data = bytearray(self.socket.recv(65536))
            found = struct.unpack("<I", data[8:12])[0]
            data[8:12] = bytes(4)
            assert found == crc32c(bytes(data)), "a wrong checksum"
            packet = SCTP(bytes(data))
            assert (packet.sport, packet.dport) == (self.port, self.own_port), packet.summary()
            assert packet.tag == self.own_tag, hex(packet.tag)
            for kind in kinds:
                if kind in packet:
                    return packet[kind]

    def silence(self):
        self.socket.settimeout(0.4)
        try:
            data = self.socket.recv(65536)
            raise AssertionError("an answer: " + SCTP(data).summary())
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(2)

    def init(self):
        chunk = SCTPChunkInit(init_tag=self.own_tag, a_rwnd=100_000, n_out_streams=10, n_in_streams=10, init_tsn=self.tsn)
        self.send(chunk, tag=0)
        answer = self.receive(SCTPChunkInitAck)
        self.tag = answer.init_tag
        self.their_tsn = answer.init_tsn
        return next(p for p in answer.params if isinstance(p, SCTPChunkParamStateCookie)).cookie

    def open(self):
        cookie = self.init()
        self.send(SCTPChunkCookieEcho(cookie=cookie))
        self.receive(SCTPChunkCookieAck)

    def data(self, payload, stream=0, seq=0, begin=1, end=1, unordered=0):
        chunk = SCTPChunkData(
            tsn=self.tsn, stream_id=stream, stream_seq=seq, proto_id=7, beginning=begin, ending=end, unordered=unordered, data=payload
        )
        self.tsn = (self.tsn + 1) & 0xFFFFFFFF
        return chunk


def echo(peer):
    """Data over the wrap of the TSN, in fragments, out of order."""
    peer.open()
    peer.send(peer.data(b"one", seq=0))
    got = peer.receive(SCTPChunkData)
    assert got.data == b"one" and got.tsn == peer.their_tsn, got.summary()
    first, second, third = (peer.data(b"a" * 4, 1, 0, 1, 0), peer.data(b"b" * 4, 1, 0, 0, 0), peer.data(b"c" * 3, 1, 0, 0, 1))
    peer.send(third)
    sack = peer.receive(SCTPChunkSACK)
    assert sack.n_gap_ack == 1, sack.show(dump=True)
    peer.send(first, second)
    while (got := peer.receive(SCTPChunkData)).data != b"aaaabbbbccc":
        assert got.data == b"one", got.data
    peer.send(SCTPChunkSACK(cumul_tsn_ack=got.tsn, a_rwnd=100_000))


def heartbeat(peer):
    raw = bytes([4, 0, 0, 16]) + struct.pack("!HH", 1, 12) + b"12345678"
    peer.send(Raw(raw))
    answer = peer.receive(SCTPChunkHeartbeatAck)
    assert b"12345678" in bytes(answer), bytes(answer)


def wrong_tag_and_checksum(peer):
    peer.send(SCTPChunkAbort(), tag=peer.tag ^ 1)
    peer.send(SCTPChunkAbort(), spoil=True)
    peer.silence()
    heartbeat(peer)


def unknown_chunk(peer):
    peer.send(Raw(bytes([0x7F, 0, 0, 8]) + b"what"))
    error = peer.receive(SCTPChunkError)
    assert b"what" in bytes(error), bytes(error)
    heartbeat(peer)


def bad_stream(peer):
    peer.send(peer.data(b"x", stream=60_000))
    error = peer.receive(SCTPChunkError)
    assert bytes(error)[4:6] == b"\x00\x01", bytes(error)


def shutdown(peer):
    peer.send(SCTPChunkShutdown(cumul_tsn_ack=(peer.their_tsn + 1) & 0xFFFFFFFF))
    peer.receive(SCTPChunkShutdownAck)
    peer.send(SCTPChunkShutdownComplete())


def out_of_the_blue(peer):
    peer.tag = peer.own_tag = 77
    peer.send(peer.data(b"?"))
    peer.receive(SCTPChunkAbort)


def forged_cookie(peer):
    cookie = bytearray(peer.init())
    cookie[len(cookie) // 2] ^= 1
    peer.send(SCTPChunkCookieEcho(cookie=bytes(cookie)))
    peer.silence()


def main():
    address, udp_port, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    stories = [
        [echo, heartbeat, wrong_tag_and_checksum, unknown_chunk, bad_stream, shutdown],
        [out_of_the_blue],
        [forged_cookie],
        [echo, shutdown],
    ]
    for number, story in enumerate(stories):
        peer = Peer(address, udp_port, port, 6000 + number)
        for step in story:
            print(step.__name__, flush=True)
            step(peer)


main()
