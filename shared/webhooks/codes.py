"""The closed list of ways in which a call gets no usable answer, each with the phase it belongs to.

Written by the HTTP client, read by `answers` and by whatever shows an attempt. A code is for
programs and for the owner of the URL: none of them tells an address of the inside.
"""

from __future__ import annotations

from collections.abc import Mapping

BLOCKED = "blocked_target"
PHASES = ("dns", "connect", "tls", "write", "ttfb", "body")

ERRORS: Mapping[str, tuple[str, str]] = {
    # code: (phase, what it means)
    BLOCKED: ("dns", "a rule forbids this address"),
    "dns_not_found": ("dns", "the name does not exist, or has no address"),
    "dns_failed": ("dns", "the name could not be resolved"),
    "dns_timeout": ("dns", "the name was not resolved in time"),
    "connect_refused": ("connect", "nobody listens on that port"),
    "connect_unreachable": ("connect", "there is no way to that host"),
    "connect_timeout": ("connect", "no connection came about in time"),
    "connect_failed": ("connect", "the connection could not be made"),
    "tls_untrusted": ("tls", "the certificate is of no authority that is trusted"),
    "tls_wrong_name": ("tls", "the certificate is for another name"),
    "tls_expired": ("tls", "the certificate has expired, or is not valid yet"),
    "tls_failed": ("tls", "no encrypted connection came about (TLS 1.2 or newer)"),
    "tls_timeout": ("tls", "the encryption was not agreed upon in time"),
    "write_timeout": ("write", "the request was not taken in time"),
    "connection_reset": ("ttfb", "the connection was closed before an answer came"),
    "response_timeout": ("ttfb", "no whole head of an answer came in time"),
    "response_too_large": ("ttfb", "too many bytes came before an answer's head was whole"),
    "protocol_error": ("ttfb", "what came is no valid HTTP/1.1"),
}
