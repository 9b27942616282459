"""Foreign programs for tests: scripts that speak the child protocol, well or badly."""

from __future__ import annotations

import sys
from pathlib import Path

# A program that does what the job's args say, in any Python, without a line of ours.
PYTHON = """
import json, os, signal, subprocess, sys, time
def say(**message):
    os.write(3, (json.dumps(message) + "\\n").encode())
def raw(text):
    os.write(3, text if isinstance(text, bytes) else text.encode())
"""
ONE_BY_ONE = (
    PYTHON
    + """
say(type="hello", protocol=1)
for line in sys.stdin:
    order = json.loads(line)
    if order["type"] != "run":
        continue
    job = order["job"]
    args = job["args"]
    do = args["do"]
    if do == "pid":
        say(type="outcome", id=job["id"], outcome="completed", result=os.getpid())
    elif do == "sleep":
        time.sleep(args["seconds"])
        say(type="outcome", id=job["id"], outcome="completed")
    elif do == "die":
        os.kill(os.getpid(), args["signal"])
    elif do == "exit":
        os._exit(args["code"])
    elif do == "print":
        say(type="progress", id=job["id"], n=1)
        print("printed", flush=True)
        say(type="outcome", id=job["id"], outcome="completed")
        open(args["file"], "w").close()
    elif do == "size":
        say(type="outcome", id=job["id"], outcome="completed", result=len(args["text"]))
"""
)
# POSIX shell, with nothing but builtins and sed.
SHELL = """#!/bin/sh
say() { printf '%s\\n' "$1" >&3; }
say '{"type":"hello","protocol":1}'
while IFS= read -r line; do
  case $line in '{"type":"run"'*) ;; *) continue ;; esac
  id=${line#*'"id": "'}; id=${id#*'"id":"'}; id=${id%%'"'*}
  word=$(printf '%s' "$line" | sed -n 's/.*"word": *"\\([^"]*\\)".*/\\1/p')
  echo "about to say $word"
  say "{\\"type\\":\\"progress\\",\\"id\\":\\"$id\\",\\"n\\":1,\\"of\\":2}"
  say "{\\"type\\":\\"log\\",\\"level\\":\\"warning\\",\\"text\\":\\"said $word\\"}"
  say "{\\"type\\":\\"outcome\\",\\"id\\":\\"$id\\",\\"outcome\\":\\"completed\\",\\"result\\":\\"$word\\"}"
done
"""
NODE = """
const fs = require('fs');
const say = (message) => fs.writeSync(3, JSON.stringify(message) + '\\n');
let working = null;
process.on('SIGTERM', () => {
  if (working) { say({type: 'outcome', id: working, outcome: 'stopped', stack: 'in the timer'}); }
  working = null;
});
say({type: 'hello', protocol: 1});
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const order = JSON.parse(line);
  if (order.type !== 'run') { return; }
  const {id, args} = order.job;
  working = id;
  setTimeout(() => {
    if (working !== id) { return; }
    working = null;
    say({type: 'outcome', id, outcome: 'completed', result: args.word.toUpperCase()});
  }, args.ms || 0);
});
"""


def python(*lines: str) -> list[str]:
    """A command that is these lines of Python, which may `say` and write `raw`."""
    return [sys.executable, "-S", "-c", PYTHON + "\n".join(lines)]


def script(folder: Path, text: str, name: str = "speaker") -> str:
    """A file that may be executed."""
    file = folder / name
    file.write_text(text, "utf-8")
    file.chmod(0o755)
    return str(file)
