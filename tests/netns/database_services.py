"""More fake services of tcp_server.py: what clients of databases, and of web sockets, need to say one thing and leave."""

import base64
import hashlib
import struct

MAX_MESSAGE = 65536
WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 s1.3


class EndOfStream(ValueError):
    """The client has gone in the middle of a message."""


class Reader:
    """What a client sends, in portions."""

    def __init__(self, client):
        self._client = client
        self._data = b""

    def _more(self):
        data = self._client.read()
        if not data:
            raise EndOfStream("closed")
        self._data += data

    def exactly(self, count):
        """So many bytes."""
        if count > MAX_MESSAGE:
            raise ValueError("too long a message")
        while len(self._data) < count:
            self._more()
        head, self._data = self._data[:count], self._data[count:]
        return head

    def until(self, end):
        """Bytes before `end`, which is taken away too."""
        while end not in self._data:
            if len(self._data) > MAX_MESSAGE:
                raise ValueError("too long a message")
            self._more()
        head, _, self._data = self._data.partition(end)
        return head


def postgres(client):
    """No password, and any query selects nothing."""
    reader = Reader(client)
    ready = b"Z" + struct.pack("!i", 5) + b"I"
    length, = struct.unpack("!i", reader.exactly(4))
    reader.exactly(length - 4)
    client.send(b"R" + struct.pack("!ii", 8, 0) + ready)
    while True:
        kind, length = struct.unpack("!ci", reader.exactly(5))
        reader.exactly(length - 4)
        if kind == b"X":
            return
        tag = b"SELECT 0\0"
        client.send(b"C" + struct.pack("!i", 4 + len(tag)) + tag + ready)


def mysql(client):
    """Any password, and any query does nothing."""
    reader = Reader(client)

    def send(sequence, payload):
        client.send(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)

    def receive():
        head = reader.exactly(4)
        return reader.exactly(int.from_bytes(head[:3], "little"))

    done = b"\0\0\0\2\0\0\0"
    # LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION; PLUGIN_AUTH
    send(0, b"\x0a8.0.0-lab\0" + struct.pack("<I", 1) + b"12345678\0" + struct.pack("<HBHHB", 0xA209, 33, 2, 8, 21) +
         bytes(10) + b"123456789012\0mysql_native_password\0")
    receive()
    send(2, done)
    while receive()[:1] != b"\x01":  # COM_QUIT
        send(1, done)


def redis(client):
    """Agrees to everything."""
    reader = Reader(client)
    while True:
        count = int(reader.until(b"\r\n")[1:])
        words = []
        for _ in range(count):
            size = int(reader.until(b"\r\n")[1:])
            words.append(reader.exactly(size + 2)[:-2].upper())
        client.send(b"+PONG\r\n" if words[:1] == [b"PING"] else b"+OK\r\n")


def websocket(client):
    """Echoes short messages."""
    reader = Reader(client)
    headers = reader.until(b"\r\n\r\n").split(b"\r\n")
    key = next(line.partition(b":")[2].strip() for line in headers if line.lower().startswith(b"sec-websocket-key:"))
    accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET_GUID).digest())
    client.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while True:
        kind, length = reader.exactly(2)
        mask = reader.exactly(4)
        data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(reader.exactly(length & 0x7F)))
        client.send(bytes([kind, len(data)]) + data)


SERVICES = {3306: mysql, 5432: postgres, 6379: redis, 8080: websocket}
