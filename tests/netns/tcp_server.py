"""Fake services: each speaks just enough of its protocol for a client to end as it does with a real server.

    tcp_server.py WHERE

Listens on every port of SERVICES, on all addresses of both families. Reports on stdout, one JSON line each, when a
connection is accepted and when it has ended, with the number of bytes that the client sent. WHERE goes into each line,
so that a second server (on the client's loopback, say) can be told from the first.
"""

import ipaddress
import json
import os
import pathlib
import selectors
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # python3 -I does not

import database_services  # pylint: disable=wrong-import-position

MAX_REQUEST = 65536  # bytes of one request read at most; the clients of the tests send far less
IPV6_TRANSPARENT = 75  # of linux/in6.h
IDLE_SECONDS = 30  # a client silent for so long is dropped


class Client:
    """One accepted connection; counts what the client sends."""

    def __init__(self, connection):
        self.connection = connection
        self.received = 0

    def read(self):
        """Some bytes; b"" at the end."""
        data = self.connection.recv(MAX_REQUEST)
        self.received += len(data)
        return data

    def read_until(self, end):
        """Bytes up to and with `end`, or what came before the client closed."""
        data = b""
        while end not in data and len(data) < MAX_REQUEST:
            more = self.read()
            if not more:
                break
            data += more
        return data

    def send(self, data):
        """Sends all of `data`."""
        self.connection.sendall(data)

    def read_to_end(self):
        """Reads until the client closes."""
        while self.read():
            pass


def http(client):
    """One request, one reply, closed."""
    if client.read_until(b"\r\n\r\n"):
        body = b"hello\n"
        client.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def https(client):
    """A TLS handshake with a throw-away certificate, then as http."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = f"{folder}/key.pem", f"{folder}/certificate.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=lab.test", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    client.received += 1  # the handshake's bytes are read by the ssl module
    client.connection = context.wrap_socket(client.connection, server_side=True)
    http(client)


def ssh(client):
    """The banner, the client's, then the end: as far as ssh gets without keys."""
    client.send(b"SSH-2.0-lab\r\n")
    client.read_until(b"\n")


def git(client):
    """A repository with one branch (git protocol, version 0)."""
    client.read_until(b"\0")
    line = b"1234567890123456789012345678901234567890 refs/heads/main\0agent=lab\n"
    client.send(b"%04x%s0000" % (len(line) + 4, line))
    client.read_to_end()


def telnet(client):
    """One line of text, then the end."""
    client.send(b"hello\r\n")
    client.connection.shutdown(socket.SHUT_WR)
    client.read_to_end()


def smtp(client):
    """Agrees to everything."""
    client.send(b"220 lab.test ESMTP\r\n")
    while line := client.read_until(b"\r\n"):
        if line.upper().startswith(b"QUIT"):
            client.send(b"221 bye\r\n")
            return
        if line.upper().startswith(b"DATA"):
            client.send(b"354 go on\r\n")
            client.read_until(b"\r\n.\r\n")
        client.send(b"250 ok\r\n")


def ldap(client):
    """Success, and nothing found. Requests are told apart by their tag behind a message id of one byte."""
    success = b"\x0a\x01\x00\x04\x00\x04\x00"
    while request := client.read():
        at = request.index(b"\x02\x01", 1, 8)
        message_id, operation = request[at + 2], request[at + 3]
        reply_tag = {0x60: 0x61, 0x63: 0x65}.get(operation)  # bind, search
        if reply_tag is None:
            return
        client.send(bytes([0x30, 0x0C, 2, 1, message_id, reply_tag, len(success)]) + success)


def mqtt(client):
    """Accepts the session; what is published at quality 0 needs no reply."""
    if client.read():
        client.send(b"\x20\x02\x00\x00")
    client.read_to_end()


def echo(client):
    """Sends back what comes, until the client closes."""
    while data := client.read():
        client.send(data)


SERVICES = {7: echo, 22: ssh, 5222: echo, 23: telnet, 25: smtp, 80: http, 389: ldap, 443: https, 1883: mqtt, 9418: git,
            **database_services.SERVICES}


def report(event, time_ms=None, **fields):
    """One JSON line on stdout by one write(2): the lab's programs share the pipe."""
    stamp = round(time.monotonic() * 1000 if time_ms is None else time_ms, 3)
    line = json.dumps({"event": event, "time_ms": stamp, "where": sys.argv[1], **fields}) + "\n"
    os.write(sys.stdout.fileno(), line.encode())


def plain(address):
    """The address as text, an IPv4-mapped one as IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def converse(connection, number, service):
    """Serves one connection and reports its end."""
    client = Client(connection)
    ended = "closed"
    try:
        connection.settimeout(IDLE_SECONDS)
        service(client)
    except OSError as error:
        ended = type(error).__name__
    except ValueError as error:  # not the protocol of this port
        ended = str(error)
    client.connection.close()
    report("end", id=number, bytes=client.received, ended=ended)


def listen(port):
    """A listening socket for both families."""
    listener = socket.create_server(("::", port), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True)
    listener.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)  # else IPv4 replies only from configured addresses
    listener.setblocking(False)
    return listener


def main():
    """Accepts until killed; every connection has a thread."""
    selector = selectors.DefaultSelector()
    for port, service in SERVICES.items():
        selector.register(listen(port), selectors.EVENT_READ, service)
    report("ready", who="tcp_server")
    number = 0
    while True:
        for key, _ in selector.select():
            connection, peer = key.fileobj.accept()
            accepted_ms = time.monotonic() * 1000
            number += 1
            local = connection.getsockname()
            report("accept", accepted_ms, id=number, address=plain(local[0]), port=local[1], peer=plain(peer[0]),
                   peer_port=peer[1])
            threading.Thread(target=converse, args=(connection, number, key.data), daemon=True).start()


if __name__ == "__main__":
    main()
