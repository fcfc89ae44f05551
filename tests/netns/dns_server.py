"""A DNS server that does what a zone file tells it, well or badly.

    dns_server.py ZONE.json ADDRESS ...

Listens on port 53 of each address, over UDP and TCP. The zone is read again for every query, so a test may change it
at any time:

    {"wget.test": {"AAAA": {"records": ["2001:db8:2::1"], "delay_ms": 400},
                   "A":    {"records": ["198.51.100.1"], "action": "drop"},
                   "HTTPS": {"records": ["000100"], "ttl": 5}}}

Records are text: addresses for A and AAAA, a name for CNAME, NS and PTR, "priority weight port target" for SRV, text
for TXT, hexadecimal RDATA for every other type (HTTPS and SVCB too). A name's own CNAME answers all its types, followed
by the target's records. "answers": [[OWNER, TYPE, TEXT], ...] is the whole answer as it is sent, whatever it may mean; in
names a backslash and three digits are that byte, and before anything else it belongs to the label. Actions: drop, drop_udp, truncate, formerr, servfail, nxdomain, notimp, refused, nodata,
close (TCP), garbage. "lost": N drops the first N queries.
A name not in the zone gets NXDOMAIN, a type not there NODATA.

Each query is reported on stdout as one JSON line when it comes in.
"""

import collections
import ipaddress
import json
import os
import re
import socket
import socketserver
import struct
import sys
import threading
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "TXT": 16, "AAAA": 28, "SRV": 33, "DNAME": 39, "SVCB": 64, "HTTPS": 65}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED = 1, 2, 3, 4, 5
RCODE_OF_ACTION = {"formerr": FORMERR, "servfail": SERVFAIL, "nxdomain": NXDOMAIN, "notimp": NOTIMP,
                   "refused": REFUSED}
MAX_CNAMES = 8  # more than any test chains; a loop ends here
DEFAULT_TTL = 60


def encode_name(name):
    """The name in wire form, never compressed."""
    plain = name[:-1] if name.endswith(".") and not name.endswith("\\.") else name
    labels = [unescape(label) for label in re.findall(r"(?:[^.\\]|\\\d{3}|\\.)+", plain)]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def unescape(label):
    """The bytes of a label as it stands in a zone file."""
    return re.sub(rb"\\(\d{3}|.)", lambda m: bytes([int(m[1])]) if len(m[1]) == 3 else m[1], label.encode())


def encode_rdata(record_type, text):
    """The RDATA that `text` stands for."""
    if record_type in ("A", "AAAA"):
        return ipaddress.ip_address(text).packed
    if record_type in ("CNAME", "DNAME", "NS", "PTR"):
        return encode_name(text)
    if record_type == "SRV":
        *numbers, target = text.split()
        return struct.pack("!3H", *map(int, numbers)) + encode_name(target)
    if record_type == "TXT":
        return bytes([len(text)]) + text.encode()
    return bytes.fromhex(text)


def encode_record(owner, record_type, ttl, text):
    """One resource record in wire form."""
    number = TYPES.get(record_type) or int(record_type.removeprefix("TYPE"))
    rdata = encode_rdata(record_type, text)
    return encode_name(owner) + struct.pack("!HHIH", number, 1, ttl, len(rdata)) + rdata


def parse_question(query):
    """(name in lower case, type as text, the question's bytes) of a query; ValueError or IndexError if it is none."""
    labels, at = [], 12
    while query[at]:
        if query[at] > 63:
            raise ValueError("compressed question")
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1").lower())
        at += 1 + query[at]
    number = struct.unpack_from("!H", query, at + 1)[0]
    return ".".join(labels), TYPE_NAMES.get(number, f"TYPE{number}"), query[12 : at + 5]


def answer_records(zone, name, record_type):
    """(records in wire form, rcode): the CNAME chain from `name`, then the records of its end."""
    records = []
    for _ in range(MAX_CNAMES):
        entry = zone.get(name)
        if entry is None:
            return records, NXDOMAIN
        alias = entry.get("CNAME")
        if alias and record_type != "CNAME":
            records.append(encode_record(name, "CNAME", alias.get("ttl", DEFAULT_TTL), alias["records"][0]))
            name = alias["records"][0].rstrip(".")
            continue
        found = entry.get(record_type, {})
        if "answers" in found:
            return records + [encode_record(*owner_and_type, DEFAULT_TTL, text)
                              for *owner_and_type, text in found["answers"]], 0
        if found.get("action") != "nodata":
            ttl = found.get("ttl", DEFAULT_TTL)
            records += [encode_record(name, record_type, ttl, text) for text in found.get("records", ())]
        return records, 0
    return records, SERVFAIL


def make_reply(query, question, records, rcode, truncated):
    """A whole reply message: QR, AA, RD copied, RA."""
    flags = 0x8480 | (query[2] & 1) << 8 | (0x0200 if truncated else 0) | rcode
    return query[:2] + struct.pack("!5H", flags, 1, len(records), 0, 0) + question + b"".join(records)


def report(event, **fields):
    """One JSON line on stdout by one write(2): the lab's programs share the pipe."""
    line = json.dumps({"event": event, "time_ms": round(time.monotonic() * 1000, 3), **fields}) + "\n"
    os.write(sys.stdout.fileno(), line.encode())


_seen = collections.Counter()


def is_lost(name, record_type, lost):
    """Whether this is one of the first `lost` queries for the name and type."""
    _seen[name, record_type] += 1
    return _seen[name, record_type] <= lost


def report_query(query, transport, server_address, source_port):
    """Tells that a query has come; whether it is one."""
    try:
        name, record_type, _ = parse_question(query)
    except (ValueError, IndexError, struct.error):
        return False
    report("query", name=name, type=record_type, transport=transport, server=server_address, source_port=source_port,
           edns=query[10:12] != b"\0\0")
    return True


_zone = (None, {})  # which file it was, and what is in it


def current_zone():
    """What the zone's file says now; it is replaced and not written to."""
    global _zone  # pylint: disable=global-statement
    known, zone = _zone
    with open(sys.argv[1], encoding="ascii") as zone_file:
        status = os.fstat(zone_file.fileno())
        if known != (status.st_ino, status.st_mtime_ns):
            zone = json.load(zone_file)
            _zone = ((status.st_ino, status.st_mtime_ns), zone)
    return zone


def reply_to(query, transport):
    """The reply to `query` after its delay; None to stay silent, b"" to close a TCP connection."""
    name, record_type, question = parse_question(query)
    zone = current_zone()
    rule = zone.get(name, {}).get(record_type, {})
    action = rule.get("action")
    if is_lost(name, record_type, rule.get("lost", 0)):
        return None
    time.sleep(rule.get("delay_ms", 0) / 1000)
    if action == "drop" or (action == "drop_udp" and transport == "udp"):
        return None
    if action == "close" and transport == "tcp":
        return b""
    if action == "garbage":
        return query[:2] + b"\xff" * 20
    if action in RCODE_OF_ACTION:
        return make_reply(query, question, [], RCODE_OF_ACTION[action], False)
    if action == "truncate" and transport == "udp":
        return make_reply(query, question, [], 0, True)
    records, rcode = answer_records(zone, name, record_type)
    return make_reply(query, question, records, rcode, False)


class UdpServer(socketserver.ThreadingUDPServer):
    """Reports queries before they get a thread each: in the order in which they came."""

    def verify_request(self, request, client_address):
        return report_query(request[0], "udp", self.server_address[0], client_address[1])


class UdpHandler(socketserver.BaseRequestHandler):
    """Answers one datagram, in a thread of its own, so that a delay delays nothing else."""

    def handle(self):
        query, udp_socket = self.request
        reply = reply_to(query, "udp")
        if reply:
            udp_socket.sendto(reply, self.client_address)


class TcpHandler(socketserver.StreamRequestHandler):
    """Answers the queries of one TCP connection, one after another."""

    def handle(self):
        while len(prefix := self.rfile.read(2)) == 2:
            query = self.rfile.read(struct.unpack("!H", prefix)[0])
            reported = report_query(query, "tcp", self.server.server_address[0], self.client_address[1])
            reply = reported and reply_to(query, "tcp")
            if reply == b"":
                return
            if reply:
                self.wfile.write(struct.pack("!H", len(reply)) + reply)


def serve(address):
    """Starts both transports on `address`."""
    for base, handler in ((UdpServer, UdpHandler), (socketserver.ThreadingTCPServer, TcpHandler)):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        settings = {"address_family": family, "daemon_threads": True, "allow_reuse_address": True}
        where = socket.getaddrinfo(address, 53, family, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)[0][4]  # with its scope
        server = type("Server", (base,), settings)(where, handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    """Serves until killed."""
    for address in sys.argv[2:]:
        serve(address)
    report("ready", who="dns_server")
    threading.Event().wait()


if __name__ == "__main__":
    main()
