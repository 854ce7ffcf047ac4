"""Stores messages in a mailbox, small and large, and fetches them again in two sessions; prints what came."""
import hashlib
import imaplib
import sys

port = int(sys.argv[1])
SIZES = [10, 5000, 200_000, 2_000_000]


def message(size):
    line = "0123456789abcdef" * 4 + "\r\n"
    body = (line * (size // len(line) + 1))[:size]
    return ("Subject: %d\r\n\r\n%s" % (size, body)).encode()


def session():
    box = imaplib.IMAP4("127.0.0.1", port)
    box.login("somebody", "secret")
    box.select()
    return box


box = session()
for size in SIZES:
    kind, _ = box.append("INBOX", None, None, message(size))
    assert kind == "OK", kind
box.logout()

for _ in range(2):
    box = session()
    kind, numbers = box.search(None, "ALL")
    for number in numbers[0].split():
        kind, data = box.fetch(number, "(BODY.PEEK[TEXT])")
        text = data[0][1]
        print(number.decode(), len(text), hashlib.sha256(text).hexdigest())
    for _ in range(200):
        assert box.noop()[0] == "OK"
    box.logout()
