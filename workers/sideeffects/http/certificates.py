"""Whom we believe: the authorities that httpx ships, and those that the operator adds.

Made once a process (reading them takes tens of milliseconds) and shared by all calls. There is no
way to switch the check off.
"""

from __future__ import annotations

import ssl

import httpx


def trust(ca_file: str = "") -> ssl.SSLContext:
    """A context for clients: TLS 1.2 or newer, names checked.

    Args:
        ca_file: PEM bundle of further authorities; "" = none. Settings have seen that it is one.
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context
