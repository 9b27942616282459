"""`weirkeeper webhooks check-url URL`: whether it may be called from here, and which rule says no.

Judges by this environment's settings, exactly as an endpoint is judged. Sends nothing; asks the
resolver, unless told not to.
"""

from __future__ import annotations

import argparse
from typing import Any

from panel.cli.output import print_json
from panel.cli.terminal import clean
from shared.config.settings import Settings
from shared.services.calls import Overdue
from shared.services.resolver import NameUnresolved, SystemResolver
from shared.webhooks.denied import RULES, Denied
from shared.webhooks.policy import Policy

SECONDS = 10.0  # to resolve a name


def add_arguments(actions: Any) -> None:
    """Declare the action's arguments."""
    parser = actions.add_parser("check-url", help="whether a URL may be called, by which rule not")
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--no-resolve", action="store_true", help="judge the URL alone, ask no DNS")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(act=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict; return 0 = allowed, 1 = not."""
    found = judge(Policy(Settings.load().outbound), args.url, resolve=not args.no_resolve)
    if args.json:
        print_json(found)
    else:
        print(_told(found))
    return 0 if found["allowed"] else 1


def judge(policy: Policy, url: str, *, resolve: bool) -> dict[str, Any]:
    """The verdict as plain values. Addresses are told: who asks runs this installation."""
    found: dict[str, Any] = {"allowed": False, "url": url, "rule": "", "why": "", "addresses": []}
    try:
        target = policy.check_url(url)
        found["url"] = target.url
        if target.literal is not None:
            found["addresses"] = [str(target.literal)]
        elif resolve:
            as_is = policy.trusts(target)
            found["addresses"] = SystemResolver().resolve(target.host, SECONDS, as_is=as_is)
            policy.check_addresses(target, found["addresses"])
    except Denied as denied:
        found.update(rule=denied.rule, why=denied.why)
    except (NameUnresolved, Overdue) as error:
        found["why"] = (
            f"no rule forbids it, but the name could not be resolved: {error}; "
            "an endpoint may have it, and is tried again until it can be"
        )
    else:
        found["allowed"] = True
    return found


def _told(found: dict[str, Any]) -> str:
    addresses = ", ".join(found["addresses"])
    lines = [f"{'allowed' if found['allowed'] else 'refused'}: {clean(found['url'])}"]
    if found["rule"]:
        lines += [f"rule: {found['rule']} ({RULES[found['rule']]})"]
    if found["why"]:
        lines += [f"why: {clean(found['why'])}"]
    return "\n".join([*lines, *([f"addresses: {addresses}"] if addresses else [])])
