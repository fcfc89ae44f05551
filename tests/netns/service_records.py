"""RDATA of SVCB and HTTPS records in the hexadecimal form that dns_server.py takes."""

import ipaddress
import struct


def wire_name(name):
    """A domain name, never compressed; "." is the root."""
    labels = [label for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def parameter(key, value):
    """One SvcParam."""
    return struct.pack("!HH", key, len(value)) + value


def packed(addresses):
    """Addresses of one family, as a hint carries them."""
    return b"".join(ipaddress.ip_address(address).packed for address in addresses)


def record(priority, target=".", *, mandatory=(), alpn=(), no_default_alpn=False, port=None, ech=b"", hints=(), raw=b""):
    """The RDATA; `raw` comes behind all parameters."""
    rdata = struct.pack("!H", priority) + wire_name(target)
    if mandatory:
        rdata += parameter(0, b"".join(struct.pack("!H", key) for key in mandatory))
    if alpn:
        rdata += parameter(1, b"".join(bytes([len(name)]) + name.encode() for name in alpn))
    if no_default_alpn:
        rdata += parameter(2, b"")
    if port is not None:
        rdata += parameter(3, struct.pack("!H", port))
    for key, family in ((4, "."), (5, None), (6, ":")):
        if family is None:
            rdata += parameter(key, ech) if ech else b""
        elif addresses := [hint for hint in hints if family in hint]:
            rdata += parameter(key, packed(addresses))
    return (rdata + raw).hex()


# Malformed in every way that RFC 9460 s2.2 and s7 name; each beside what is wrong with it.
MALFORMED = {
    "empty": "",
    "no target": "0001",
    "target cut": "000103666f",
    "target compressed": "0001c00c",
    "parameter cut": "0001" + "00" + "0003",
    "value cut": "0001" + "00" + "00030002" + "20",
    "order": "0001" + "00" + "000300020050" + "00010003026832",
    "a key twice": "0001" + "00" + "000300020050" + "000300020050",
    "port of one byte": "0001" + "00" + "0003000150",
    "hint of three bytes": "0001" + "00" + "00040003c00002",
    "no hint": "0001" + "00" + "00060000",
    "alpn of no length": "0001" + "00" + "0001000100",
    "alpn beyond its end": "0001" + "00" + "00010002056832"[:-2],
    "no-default-alpn with a value": "0001" + "00" + "0001000302683200020001ff",
    "mandatory lists itself": "0001" + "00" + "000000020000",
    "mandatory not ascending": "0001" + "00" + "0000000400030001" + "00010003026832" + "000300020050",
    "ech without a value": "0001" + "00" + "00050000",
}
