# SPDX-License-Identifier: MIT
"""Ports for servers that start later than their port is chosen, or again and again.

    sys.path.insert(0, .../test/support)
    from ports import reserve
"""
import contextlib
import pathlib
import random
import socket
import sys

RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST, N_PORTS, LEAST = 32768, 12000, 1024
_kept = []


def reserve():
    """Return a port that no other test gets while this process runs, also while nobody listens
    there.

    A port that the system has chosen would be free again when its socket is closed, and the next
    process that asks for any port can get it. So the port is below the range from which the system
    chooses. The tests share the ports there by the names of Unix sockets, which are gone when
    their process ends. Only Linux has such names; elsewhere the system chooses, and the port is
    free until it is used."""
    if sys.platform != "linux":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]
    first = int(RANGE.read_text().split()[0]) if RANGE.exists() else FIRST
    if first < 2 * LEAST:  # the system may choose all of them
        first = FIRST
    ports = list(range(max(LEAST, first - N_PORTS), first))
    random.shuffle(ports)
    for port in ports:
        name = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), socket.socket() as probe:
            name.bind(f"\0tnk-test-port-{port}")
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            _kept.append(name)
            return port
        name.close()
    raise RuntimeError("all ports are in use")
