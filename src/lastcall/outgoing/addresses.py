"""Which addresses the server may be sent to. A provider's discovery document and a calendar's address are given by
others, and one that leads into our own network would have us ask there on somebody else's behalf.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""A host name and a port to the addresses that it has now."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_COMPATIBLE = ipaddress.IPv6Network("::/96")  # RFC 4291: deprecated, and still routed by some


class AddressRefused(Exception):
    """The host has an address that is not on the public internet."""


async def resolve(host: str, port: int) -> list[str]:
    """Every address of the host, by the system's resolver. Raises ``OSError`` when there is none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: str) -> bool:
    """Whether the address is one of the public internet, whatever form it is written or wrapped in."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _inner(ip)
        if inner is not None:
            return all(_is_global(one) for one in inner)
        if ip.is_site_local:
            return False
    return _is_global(ip)


def _is_global(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    special = ip.is_multicast or ip.is_reserved or ip.is_unspecified or ip.is_loopback or ip.is_link_local
    return ip.is_global and not special


def _inner(ip: ipaddress.IPv6Address) -> tuple[ipaddress.IPv4Address, ...] | None:
    """The IPv4 addresses that an IPv6 one stands for, when it does."""
    if ip.ipv4_mapped is not None:
        return (ip.ipv4_mapped,)
    if ip.sixtofour is not None:
        return (ip.sixtofour,)
    if ip.teredo is not None:
        return ip.teredo
    if ip in _TRANSLATED or ip in _COMPATIBLE:
        return (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF),)
    return None


async def allowed_addresses(host: str, port: int, look_up: Resolve, *, private: bool) -> list[str]:
    """The addresses to connect to, looked up once: who connects to the name again would ask again, and may be
    told another address. One private address among public ones refuses them all.
    """
    addresses = await look_up(host, port)
    if not private and not all(is_public(address) for address in addresses):
        raise AddressRefused(host)
    return addresses
