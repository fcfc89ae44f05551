"""A DNS server whose replies are odd, each in the way that the first label of the name asked for says.

    odd_dns_server.py ADDRESS

Listens on UDP port 53 of the address. KINDS names the ways; an unknown label gets an ordinary reply.
"""

import ipaddress
import json
import os
import socket
import struct
import sys
import time

from dns_server import TYPES, encode_name, parse_question

ADDRESSES = {TYPES["A"]: "198.51.100.5", TYPES["AAAA"]: "2001:db8:2::5"}
CNAME, SOA, TXT, DNAME = TYPES["CNAME"], TYPES["SOA"], TYPES["TXT"], 39
RESPONSE, TRUNCATED = 0x8180, 0x200


class Reply:
    """What ordinary replies to one query are made of."""

    def __init__(self, query):
        self.query = query
        self.name, _, self.question = parse_question(query)
        self.type = struct.unpack("!H", self.question[-4:-2])[0]
        self.rdata = ipaddress.ip_address(ADDRESSES.get(self.type, "192.0.2.99")).packed

    def record(self, owner=None, record_type=None, rdata=None, record_class=1, ttl=60):
        """One record; the answer to the query if nothing else is said."""
        rdata = self.rdata if rdata is None else rdata
        number = self.type if record_type is None else record_type
        return encode_name(self.name if owner is None else owner) + struct.pack(
            "!HHIH", number, record_class, ttl, len(rdata)) + rdata

    def alias(self, target, owner=None):
        """A CNAME record."""
        return self.record(owner, CNAME, encode_name(target))

    def message(self, *records, count=None, question=None, questions=1, flags=RESPONSE, tail=b""):
        """A whole message."""
        header = struct.pack("!5H", flags, questions, len(records) if count is None else count, 0, 0)
        return self.query[:2] + header + (self.question if question is None else question) + b"".join(records) + tail


def other_question(r):
    """For another name, then the right one."""
    wrong = r.message(r.record("evil.test", rdata=r.rdata[:-1] + b"\x66"), question=encode_name("evil.test") + r.question[-4:])
    return wrong, r.message(r.record())


def pointer_loop(r):
    """The owner's name points to itself."""
    loop = struct.pack("!H", 0xC000 | 12 + len(r.question))
    return [r.message(count=1, tail=loop + struct.pack("!HHIH", r.type, 1, 60, len(r.rdata)) + r.rdata)]


def other_family(r):
    """Addresses of the other family."""
    other = next(number for number in ADDRESSES if number != r.type)
    return [r.message(r.record(record_type=other, rdata=ipaddress.ip_address(ADDRESSES[other]).packed))]


def padded(size, flags=RESPONSE):
    """Address records between others that make the message so large; its server listens at no TCP port."""
    def make(r):
        def addresses(count):
            return [r.record(rdata=r.rdata[:-1] + bytes([n + 1])) for n in range(count)]
        first, last = addresses(3), addresses(5)[3:]
        room = size - len(r.message(*first, *last))
        padding = []
        while room > 0:
            empty = len(r.record(record_type=TXT, rdata=b""))
            padding.append(r.record(record_type=TXT, rdata=bytes(min(max(room - empty, 0), 60000))))
            room -= len(padding[-1])
        return [r.message(*first, *padding, *last, flags=flags)]
    return make


def half(record_type):
    """An alias without an end for one of the types."""
    return lambda r: [r.message(r.alias("b.test") if r.type == record_type else r.record())]


class Elsewhere(bytes):
    """A message that is sent from another port."""


def worse(r, last=1):
    """An answer with a wrong address."""
    return r.message(r.record(rdata=r.rdata[:-1] + bytes([0x66 + last])))


def with_edns(otherwise):
    """Ordinary replies to queries with an OPT record, or without."""
    def make(r, asks=lambda r: r.query[10:12] != b"\0\0"):
        return [r.message(r.record())] if not asks(r) else otherwise(r)
    return make


KINDS = {
    "wrong-id": lambda r: [bytes([r.query[0] ^ 0xFF]) + worse(r)[1:], r.message(r.record())],
    "wrong-id-only": lambda r: [bytes([r.query[0] ^ 0xFF]) + worse(r)[1:]],
    "other-port": lambda r: [Elsewhere(worse(r)), r.message(r.record())],
    "other-port-only": lambda r: [Elsewhere(worse(r))],
    "two-answers": lambda r: [r.message(r.record()), worse(r)],
    "answer-and-nxdomain": lambda r: [r.message(r.record()), r.message(flags=RESPONSE | 3)],
    "nxdomain-and-answer": lambda r: [r.message(flags=RESPONSE | 3), r.message(r.record())],
    "servfail-and-answer": lambda r: [r.message(flags=RESPONSE | 2), r.message(r.record())],
    "other-type": lambda r: [r.message(r.record(), question=r.question[:-4] + b"\0\x10\0\1"), r.message(r.record())],
    "other-opcode": lambda r: [r.message(r.record(), flags=RESPONSE | 0x2800)],
    "two-questions": lambda r: [r.message(r.record(), question=r.question * 2, questions=2)],
    "not-recursive": lambda r: [r.message(r.record(), flags=0x8100)],
    "lame": lambda r: [r.message(flags=0x8100)],
    "lame-with-additional": lambda r: [r.message(flags=0x8100)[:10] + b"\0\1" + r.message()[12:] + r.record()],
    "authoritative-nothing": lambda r: [r.message(flags=0x8500)],
    "edns-formerr": with_edns(lambda r: [r.message(flags=RESPONSE | 1)]),
    "edns-notimp": with_edns(lambda r: [r.message(flags=RESPONSE | 4)]),
    "edns-servfail": with_edns(lambda r: [r.message(flags=RESPONSE | 2)]),
    "edns-refused": with_edns(lambda r: [r.message(flags=RESPONSE | 5)]),
    "edns-badvers": with_edns(lambda r: [r.message()[:10] + b"\0\1" + r.message()[12:] + b"\0\0\x29\4\xd0\1\0\0\0\0\0"]),
    "edns-silent": with_edns(lambda r: []),
    "other-question": other_question,
    "other-question-only": lambda r: other_question(r)[:1],
    "upper-case": lambda r: [r.message(r.record(r.name.upper()), question=encode_name(r.name.upper()) + r.question[-4:])],
    "no-question": lambda r: [r.message(r.record(), question=b"", questions=0)],
    "trailing-bytes": lambda r: [r.message(r.record(), tail=b"\xff" * 30)],
    "other-class": lambda r: [r.message(r.record(record_class=3), r.record())],
    "other-family": other_family,
    "other-owner": lambda r: [r.message(r.record("other.test"))],
    "short-address": lambda r: [r.message(r.record(rdata=r.rdata[:3]))],
    "long-address": lambda r: [r.message(r.record(rdata=r.rdata + b"\0"))],
    "count-too-high": lambda r: [r.message(r.record(), count=5)],
    "alias-last": lambda r: [r.message(r.record("c.test"), r.alias("c.test"))],
    "alias-of-itself": lambda r: [r.message(r.alias(r.name), r.record())],
    "two-aliases": lambda r: [r.message(r.alias("a.test"), r.alias("b.test"), r.record("b.test"))],
    "alias-of-another": lambda r: [r.message(r.alias("b.test", "zzz.test"), r.record("b.test"))],
    "alias-alone": lambda r: [r.message(r.alias("b.test"))],
    "alias-nxdomain": lambda r: [r.message(r.alias("b.test"), flags=RESPONSE | 3)],
    "nxdomain-with-address": lambda r: [r.message(r.record(), flags=RESPONSE | 3)],
    "truncated": lambda r: [r.message(r.record(), flags=RESPONSE | TRUNCATED)],
    "formerr": lambda r: [r.message(flags=RESPONSE | 1)],
    "servfail": lambda r: [r.message(flags=RESPONSE | 2)],
    "notimp": lambda r: [r.message(flags=RESPONSE | 4)],
    "refused": lambda r: [r.message(flags=RESPONSE | 5)],
    "yxdomain": lambda r: [r.message(flags=RESPONSE | 6)],
    "rcode-15": lambda r: [r.message(flags=RESPONSE | 15)],
    "pointer-loop": pointer_loop,
    "no-response": lambda r: [r.message(r.record(), flags=0x0100)],
    "six-bytes": lambda r: [r.query[:6]],
    "empty-datagram": lambda r: [b""],
    "nodata": lambda r: [r.message()],
    "soa-only": lambda r: [r.message(r.record(record_type=SOA, rdata=encode_name("a.") * 2 + bytes(20)))],
    "half-6": half(TYPES["AAAA"]),
    "half-4": half(TYPES["A"]),
    "large-ttl": lambda r: [r.message(r.record(ttl=0xFFFFFFFF))],
    "ttl-0": lambda r: [r.message(r.record(ttl=0))],
    "size-512": padded(512),
    "size-513": padded(513),
    "size-1500": padded(1500),
    "size-4097": padded(4097),
    "size-5000": padded(5000),
    "size-60000": padded(60000),
    "size-1500-truncated": padded(1500, RESPONSE | TRUNCATED),
    "size-1500-nxdomain": padded(1500, RESPONSE | 3),
    "size-1500-servfail": padded(1500, RESPONSE | 2),
    "size-1500-other-question": lambda r: [
        r.message(r.record("evil.test", rdata=r.rdata[:-1] + b"\x66"), question=encode_name("evil.test") + r.question[-4:],
                  tail=bytes(1400)), *padded(1500)(r)],
    "dname": lambda r: [r.message(r.record("test", DNAME, encode_name("x.test")), r.alias("k.x.test"), r.record("k.x.test"))],
    "escaped": lambda r: [r.message(r.record(record_type=CNAME, rdata=b"\x03a.b\x04test\0"), r.record("b.test"))],
}


def main():
    """Serves until killed."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    os.write(sys.stdout.fileno(), (json.dumps({"event": "ready", "time_ms": time.monotonic() * 1000}) + "\n").encode())
    elsewhere = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    elsewhere.bind((sys.argv[1], 5353))
    while True:
        query, client = server.recvfrom(2000)
        reply = Reply(query)
        make = KINDS.get(reply.name.partition(".")[0], lambda r: [r.message(r.record())])
        for message in make(reply):
            (elsewhere if isinstance(message, Elsewhere) else server).sendto(message, client)


if __name__ == "__main__":
    main()
