"""HAProxy under test: the sample configuration with the ports of a run."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_lua import server_names, to_lua

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def _missing() -> str:
    if HAPROXY is None:
        return "haproxy is not installed (Debian: apt install haproxy)"
    features = subprocess.run([HAPROXY, "-vv"], capture_output=True, text=True, timeout=10).stdout
    return "" if "Built with Lua" in features else f"{HAPROXY} is built without Lua"


MISSING = _missing()
needs_haproxy = pytest.mark.skipif(bool(MISSING), reason=MISSING)
SAMPLE = Path(__file__).parents[2] / "deploy" / "haproxy" / "haproxy.cfg"
PATIENCE = 10.0  # seconds until a test gives up waiting

SERVERS = re.compile(r"(?m)^ +server .*\n")
PROBE = (
    "    http-request return status 200 content-type text/plain "
    'lf-string "%[var(txn.jobs)] %[var(txn.node)]" if { path /probe }\n'
)
SENT = "    use-server %[req.hdr(node)] if { req.hdr(node) -m found }\n"


def haproxy(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run HAProxy to its end, both outputs in one."""
    assert HAPROXY is not None
    return subprocess.run(
        [HAPROXY, *arguments],
        cwd=cwd,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )


def _environment(**more: str) -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("MDPCLOUD_")} | more


def backend_lines(table: IndexTable, ports: Mapping[str, int]) -> list[str]:
    """Lines of the backend that depend on the table."""
    names = server_names(table.nodes)
    return [f"    server outside 127.0.0.1:{ports['outside']} id 1"] + [
        f"    server {name} 127.0.0.1:{ports[name]} id {10 + k} maxconn {node.servers} check"
        for k, (name, node) in enumerate(zip(names, table.nodes, strict=True))
    ]


def configuration(table: IndexTable, ports: Mapping[str, int], most: int = 200) -> str:
    """The sample configuration, with the servers of a table at the ports of a run.

    Requests of /probe are answered with what the rule read and chose, and go to no server;
    requests with a header ``node`` go to that server, whatever the rule chose. There are at most
    `most` connections at once.
    """
    text = re.sub(SERVERS, "", SAMPLE.read_text(encoding="utf-8"))
    text = re.sub(r"(?m)^    maxconn \d+", f"    maxconn {most}", text)
    decision = re.compile(r"(?m)^ +http-request set-var\(txn.node\).*\n")
    assert decision.search(text)
    text = decision.sub(lambda found: found[0] + PROBE + SENT, text)
    text += "\n".join(backend_lines(table, ports)) + "\n"
    return text.replace("global\n", "global\n    stats socket unix@stats.sock level admin\n", 1)


@dataclass
class Balancer:
    """A running HAProxy.

    Attributes
    ----------
    port : int
        Where it takes requests.
    log : Path
        What it has logged.
    """

    port: int
    log: Path
    stats: Path

    async def command(self, line: str) -> str:
        """Answer of the statistics socket."""
        reader, writer = await asyncio.open_unix_connection(str(self.stats))
        writer.write(line.encode() + b"\n")
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return answer.decode()


@contextmanager
def running(table: IndexTable, text: str, where: Path) -> Iterator[Balancer]:
    """Start HAProxy with a configuration; it is stopped at the end."""
    assert HAPROXY is not None
    (where / "indices.lua").write_text(to_lua(table), encoding="utf-8")
    (where / "haproxy.cfg").write_text(text, encoding="utf-8")
    log = where / "log"
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as entrance, log.open("w") as out:
        process = subprocess.Popen(
            [HAPROXY, "-f", "haproxy.cfg"],
            cwd=where,
            env=_environment(MDPCLOUD_BIND=f"fd@{entrance.fileno()}"),
            pass_fds=[entrance.fileno()],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        stats = where / "stats.sock"
        try:
            _await_start(process, stats, log)
            yield Balancer(entrance.getsockname()[1], log, stats)
            assert process.poll() is None, log.read_text(encoding="utf-8")
        finally:
            process.kill()
            process.wait(PATIENCE)


def _await_start(process: subprocess.Popen[bytes], stats: Path, log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not stats.exists():
        assert process.poll() is None, log.read_text(encoding="utf-8")
        assert time.monotonic() < end, "HAProxy does not start"
        time.sleep(0.01)
