"""How dangerous calls must look: a list and a timeout for programs, and checks that stay on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.gates.source import Source, complaints, everything, planted, product, red

WAITING = ("run", "call", "check_call", "check_output")  # of subprocess: they wait for the end


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {k.arg: k.value for k in call.keywords if k.arg}


def is_true(node: ast.expr | None) -> bool:
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)


def is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def programs(source: Source) -> Iterator[str]:
    """A program is started with a list, and whoever waits for its end has a deadline."""
    for call, name in source.calls():
        module, _, function = name.rpartition(".")
        if module != "subprocess" or function not in (*WAITING, "Popen"):
            continue
        given = keywords(call)
        first = call.args[0] if call.args else given.get("args")
        if isinstance(first, ast.Constant | ast.JoinedStr):
            yield f"{source.path}:{call.lineno}: {name}: expected a list, got a string"
        if function in WAITING and "timeout" not in given:
            yield f"{source.path}:{call.lineno}: {name}: expected timeout=…"


def guards(source: Source) -> Iterator[str]:
    """No shell, no TLS without a check, no retries inside a client."""
    for call, name in source.calls():
        given = keywords(call)
        where = f"{source.path}:{call.lineno}: {name or 'call'}"
        if is_true(given.get("shell")):
            yield f"{where}: shell=True"
        if is_false(given.get("verify")):
            yield f"{where}: verify=False"
        if "Transport" in name and is_true(given.get("retries")):
            yield f"{where}: retries are the job layer's"
        if name.endswith("_create_unverified_context"):
            yield f"{where}: TLS without a check"


def addresses(source: Source) -> Iterator[str]:
    """Nothing binds to every address by default."""
    anywhere = ".".join("0000")
    alone = re.compile(rf"(?<![0-9.]){re.escape(anywhere)}(?![0-9.])")  # 10.0.0.0 is another
    docstrings = source.docstrings()
    for node in source.walk(ast.Constant):
        value = node.value
        if isinstance(value, str) and alone.search(value) and id(node) not in docstrings:
            yield f"{source.path}:{node.lineno}: {anywhere}"


def test_programs_are_started_with_a_list_and_a_timeout():
    assert complaints(programs, everything()) == []


def test_checks_stay_on():
    assert complaints(guards, everything()) == []


def test_nothing_binds_to_every_address():
    assert complaints(addresses, product()) == []


def test_planted_programs_are_seen():
    assert red(programs, "import subprocess\nsubprocess.run(['x'])")
    assert red(programs, "from subprocess import check_output as c\nc('ls -l', timeout=3)")
    assert red(programs, "import subprocess\nsubprocess.Popen(f'{x} -l')")
    assert not red(programs, "import subprocess\nsubprocess.run([x], timeout=3)")
    assert not red(programs, "import subprocess\nsubprocess.Popen([x])")


def test_planted_guards_off_are_seen():
    assert red(guards, "import subprocess\nsubprocess.run(x, shell=True, timeout=1)")
    assert red(guards, "import httpx\nhttpx.Client(verify=False)")
    assert red(guards, "import httpx\nhttpx.HTTPTransport(retries=3)")
    assert not red(guards, "import httpx\nhttpx.HTTPTransport(retries=0, verify=context)")


def test_planted_addresses_are_seen():
    assert red(addresses, "host = '0.0.0.0'")
    assert red(addresses, "url = 'http://0.0.0.0:80/'")
    assert not red(addresses, "network = '10.0.0.0/8'")
    assert not list(addresses(planted('"""Never 0.0.0.0."""\nhost = "127.0.0.1"')))
