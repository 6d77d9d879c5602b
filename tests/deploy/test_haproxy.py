"""HAProxy with a table: it decides as the runtime in every state that it has, and loses no job."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mdpcloud import runtime
from mdpcloud.cli.app import app
from mdpcloud.indices.table import IndexTable
from mdpcloud.indices.table_lua import server_names, to_lua
from tests.deploy.balancer import (
    SAMPLE,
    SERVERS,
    Balancer,
    backend_lines,
    configuration,
    haproxy,
    needs_haproxy,
    running,
)
from tests.deploy.clients import FILES, may_open
from tests.deploy.nodes import HeldServer, Request, eventually, serving

pytestmark = needs_haproxy

CLIENTS = Path(__file__).with_name("clients.py")
LINE = re.compile(
    r"(?m)^\S+ GET (?P<path>\S+) jobs=(?P<jobs>\S+) chosen=(?P<chosen>\S+) server=(?P<server>\S+) "
    r"(?P<status>\d+) "
)

TABLE = IndexTable.from_json(
    json.dumps(
        {
            "format": "mdpcloud index table",
            "version": 1,
            "generator": "mdpcloud 0.1.0",
            "system": "cloud_routing",
            "name": "three nodes",
            "scenario_sha256": None,
            "units": {"time": "minute", "cost": "fee", "index": "fee per job"},
            "state": "jobs at the node, in service and waiting",
            "outside_cost": 0.5,
            "ties": {"rule": "fastest", "order": [2, 0, 1], "margin": 5e-14},
            "nodes": [
                {"name": "node 0", "servers": 2, "charge": 0.0},
                {"name": "node 1", "servers": 1, "charge": 0.05},
                {"name": "node 2", "servers": 1, "charge": 0.0},
            ],
            "policies": {
                "policy_improvement": [
                    {"index": [0.0, 0.1, 0.2, 0.3, 0.45], "beyond": "refuse"},
                    {"index": [0.05, 0.25, 0.4], "beyond": "refuse"},
                    {"index": [0.1, 0.2, 0.45], "beyond": "refuse"},
                ],
                "restless_bandit": [
                    {"index": [0.0, 0.1, 0.2], "beyond": "last"},
                    {"index": [], "beyond": "refuse"},
                    {"index": [0.1, 0.2, 0.2], "beyond": "refuse"},
                ],
            },
        }
    )
)
NAMES = server_names(TABLE.nodes)
TOP = (6, 4, 4)  # jobs per node up to which the walks go


def rule(policy: str, table: IndexTable = TABLE) -> Callable[[Sequence[int]], str]:
    """Where a job goes, by the runtime."""
    choose: Any = runtime.loads(table.to_json()).policy(policy)
    return lambda x: ["outside", *server_names(table.nodes)][choose(x)]


class Cloud:
    """HAProxy and its nodes; `jobs` is the model's state, by the jobs sent and answered."""

    def __init__(self, balancer: Balancer, servers: dict[str, HeldServer]) -> None:
        self.balancer, self.servers = balancer, servers
        self.jobs = [0] * len(NAMES)
        self._requests: list[Request] = []

    async def probe(self) -> tuple[str, str]:
        """What the rule reads and chooses now."""
        request = await Request.send(self.balancer.port, "/probe")
        status, body = await request.answer()
        request.close()
        assert status == 200
        jobs, node = body.split()
        return jobs, node

    async def settled(self) -> str:
        """What the rule chooses, once HAProxy's counts are the model's state."""
        wanted = ",".join(map(str, self.jobs))
        found = ("", "")

        async def reads_the_state() -> bool:
            nonlocal found
            found = await self.probe()
            return found[0].replace("!", "") == wanted

        try:
            await eventually(reads_the_state)
        except AssertionError:
            raise AssertionError(f"HAProxy reads {found[0]} where there are {wanted}") from None
        return found[1]

    async def send(self, path: str, **headers: str) -> Request:
        """A job, to a node if there is a header ``node``."""
        request = await Request.send(self.balancer.port, path, **headers)
        self._requests.append(request)
        return request

    async def arrive(self, k: int, length: int = 0) -> Request:
        """A job that goes to node k, whatever the rule says, with a body of some length to come."""
        headers = {"Content-Length": str(length)} if length else {}
        request = await self.send("/sent", node=NAMES[k], **headers)
        self.jobs[k] += 1
        return request

    async def leave(self, k: int) -> None:
        """End of a service at node k."""
        await self.servers[NAMES[k]].release()
        self.jobs[k] -= 1

    async def empty(self) -> None:
        for k, jobs in enumerate(self.jobs):
            for _ in range(jobs):
                await self.leave(k)
        await self.settled()

    def decisions(self) -> list[dict[str, str]]:
        return logged(self.balancer)

    def close(self) -> None:
        for request in self._requests:
            request.close()


def logged(balancer: Balancer) -> list[dict[str, str]]:
    text = balancer.log.read_text(encoding="utf-8")
    lines = (found.groupdict() for found in LINE.finditer(text))
    return [line for line in lines if line["path"] != "/probe"]


async def dropped_lines(balancer: Balancer) -> int:
    """Lines not logged: a thread waits only shortly for another one that is writing."""
    found = re.search(r"(?m)^DroppedLogs: (\d+)$", await balancer.command("show info"))
    assert found
    return int(found[1])


@asynccontextmanager
async def cloud(where: Path, edit: Callable[[str], str] = str) -> AsyncIterator[Cloud]:
    """The table's nodes behind HAProxy with its configuration, edited."""
    async with serving(["outside", *NAMES]) as (servers, ports):
        with running(TABLE, edit(configuration(TABLE, ports)), where) as balancer:
            found = Cloud(balancer, servers)
            try:
                yield found
            finally:
                found.close()


def run(test: Awaitable[None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test, 60)

    asyncio.run(limited())


def with_policy(policy: str) -> Callable[[str], str]:
    return lambda text: text.replace("lua.index.policy_improvement", f"lua.index.{policy}")


# --- decisions ------------------------------------------------------------------------------------


def snake(top: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All states up to top, each a neighbour of the one before."""
    if not top:
        yield ()
        return
    for i, head in enumerate(snake(top[:-1])):
        last = range(top[-1] + 1)
        yield from ((*head, x) for x in (last if i % 2 == 0 else reversed(last)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(TABLE.policies))
def test_every_state_of_the_lattice_is_read_and_decided_as_the_runtime_does(
    policy: str, tmp_path: Path
) -> None:
    choose = rule(policy)

    async def walk() -> None:
        async with cloud(tmp_path, with_policy(policy)) as c:
            states = list(snake(TOP))
            chosen = [await c.settled()]
            for before, after in itertools.pairwise(states):
                k = next(k for k in range(len(NAMES)) if before[k] != after[k])
                await (c.arrive(k) if after[k] > before[k] else c.leave(k))
                chosen.append(await c.settled())
            assert chosen == [choose(x) for x in states]

    run(walk())


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(TABLE.policies))
def test_jobs_go_where_the_rule_sends_them_on_a_random_walk(policy: str, tmp_path: Path) -> None:
    choose, rng = rule(policy), random.Random(5)

    async def walk() -> None:
        async with cloud(tmp_path, with_policy(policy)) as c:
            wanted = {}
            for i in range(150):
                if rng.random() < 0.4 and any(c.jobs):
                    await c.leave(rng.choice([k for k, jobs in enumerate(c.jobs) if jobs]))
                    await c.settled()
                chosen = choose(c.jobs)
                wanted[f"/{i}"] = (",".join(map(str, c.jobs)), chosen, chosen)
                await c.send(f"/{i}")
                if chosen in NAMES:
                    c.jobs[NAMES.index(chosen)] += 1
                await c.settled()
            await c.empty()
            await eventually(lambda: len(c.decisions()) == len(wanted))
            assert wanted == {
                one["path"]: (one["jobs"], one["chosen"], one["server"]) for one in c.decisions()
            }
            assert {chosen for _, chosen, _ in wanted.values()} >= {"node0", "node2"}

    run(walk())


# --- what counts as a job -------------------------------------------------------------------------


@pytest.mark.parametrize("reuse", ["never", "safe", "always"])
def test_an_open_connection_without_a_request_is_no_job(reuse: str, tmp_path: Path) -> None:
    def reusing(text: str) -> str:
        return f"{text}    option http-keep-alive\n    http-reuse {reuse}\n"

    async def test() -> None:
        async with cloud(tmp_path, reusing) as c:
            request = await c.arrive(1)
            await c.settled()
            await c.leave(1)
            assert await request.answer() == (200, "ok\n")
            await c.settled()
            request.write("/again", node="node1")
            c.jobs[1] += 1
            await c.settled()
            await c.leave(1)
            assert await request.answer() == (200, "ok\n")

    run(test())


def test_a_request_counts_from_the_end_of_its_headers(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            request = await c.arrive(1, length=4)
            await c.settled()
            request.write_body("body")
            await c.leave(1)
            assert await request.answer() == (200, "ok\n")

    run(test())


def test_a_request_that_is_buffered_counts_from_the_end_of_its_body(tmp_path: Path) -> None:
    def buffering(text: str) -> str:
        return text.replace("defaults\n", "defaults\n    option http-buffer-request\n")

    async def test() -> None:
        async with cloud(tmp_path, buffering) as c:
            request = await c.arrive(1, length=4)
            await asyncio.sleep(0.1)
            assert await c.probe() == ("0,0,0", "node0")
            request.write_body("body")
            await c.settled()
            await c.leave(1)
            assert await request.answer() == (200, "ok\n")

    run(test())


def test_a_job_whose_client_goes_away_leaves_the_queue(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            requests = [await c.arrive(1) for _ in range(3)]
            await c.settled()
            requests[2].close()
            c.jobs[1] -= 1
            await c.settled()
            await c.empty()

    run(test())


def test_a_job_whose_client_goes_away_in_service_is_no_job_any_more(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            request = await c.arrive(1)
            await c.settled()
            request.close()
            c.jobs[1] -= 1
            await c.settled()

    run(test())


def test_a_job_that_waits_beyond_its_patience_is_lost(tmp_path: Path) -> None:
    def impatient(text: str) -> str:
        return re.sub("timeout queue .*", "timeout queue 200ms", text)

    async def test() -> None:
        async with cloud(tmp_path, impatient) as c:
            await c.arrive(1)
            await c.settled()
            waiting = await c.arrive(1)
            assert (await waiting.answer())[0] == 503
            c.jobs[1] -= 1
            await c.settled()
            await c.empty()

    run(test())


# --- servers that take no jobs --------------------------------------------------------------------


@pytest.mark.parametrize("state", ["maint", "drain"])
def test_a_server_taken_out_gets_no_more_jobs(state: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            assert await c.probe() == ("0,0,0", "node0")
            await c.balancer.command(f"set server nodes/node0 state {state}")
            assert await c.probe() == ("0!,0,0", "node2")
            await c.balancer.command(f"set server nodes/node2 state {state}")
            assert await c.probe() == ("0!,0,0!", "node1")
            await c.balancer.command(f"set server nodes/node1 state {state}")
            assert await c.probe() == ("0!,0!,0!", "outside")
            request = await c.send("/outside")
            assert await request.answer() == (200, "ok\n")
            assert c.servers["outside"].paths == ["/outside"]
            await c.balancer.command("set server nodes/node0 state ready")
            assert await c.probe() == ("0,0,0", "node0")

    run(test())


def test_a_server_whose_health_check_fails_gets_no_jobs_until_it_is_back(tmp_path: Path) -> None:
    def often(text: str) -> str:
        return text.replace(" check\n", " check inter 20ms fall 1 rise 1\n")

    async def test() -> None:
        async with cloud(tmp_path, often) as c:
            node = c.servers["node0"]
            port = await node.stop()

            async def reads(jobs: str, choice: str) -> bool:
                return await c.probe() == (jobs, choice)

            await eventually(lambda: reads("0!,0,0", "node2"))
            await node.start(port)
            await eventually(lambda: reads("0,0,0", "node0"))

    run(test())


def test_jobs_waiting_at_a_server_that_goes_down_go_outside(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            requests = [await c.arrive(2) for _ in range(3)]
            await c.settled()
            await c.balancer.command("set server nodes/node2 state maint")
            assert [await one.answer() for one in requests[1:]] == [(200, "ok\n")] * 2
            assert len(c.servers["outside"].paths) == 2
            c.jobs[2] = 1
            await c.settled()
            await c.leave(2)
            assert await requests[0].answer() == (200, "ok\n")

    run(test())


def test_a_job_whose_server_refuses_the_connection_goes_outside(tmp_path: Path) -> None:
    def unchecked(text: str) -> str:
        return text.replace(" check\n", "\n")

    async def test() -> None:
        async with cloud(tmp_path, unchecked) as c:
            await c.servers["node0"].stop()
            request = await c.send("/moved")
            assert await request.answer() == (200, "ok\n")
            assert c.servers["outside"].paths == ["/moved"]
            await c.settled()

    run(test())


def test_errors_that_are_observed_mark_a_server_down(tmp_path: Path) -> None:
    def observing(text: str) -> str:
        seldom = " check inter 1m observe layer4 error-limit 3 on-error mark-down\n"
        return text.replace(" check\n", seldom)

    async def test() -> None:
        async with cloud(tmp_path, observing) as c:
            await c.balancer.command("set server nodes/node0 health up")  # one check is not enough
            await c.servers["node0"].stop()
            for _ in range(3):
                request = await c.send("/moved", node="node0")
                assert await request.answer() == (200, "ok\n")
            assert c.servers["outside"].paths == ["/moved"] * 3
            assert await c.probe() == ("0!,0,0", "node2")

    run(test())


def test_a_job_whose_server_breaks_off_is_lost_and_not_repeated(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            request = await c.arrive(1)
            await eventually(lambda: bool(c.servers["node1"].paths))
            c.servers["node1"].hang_up()
            assert (await request.answer())[0] == 502
            c.jobs[1] -= 1
            await c.settled()
            assert [len(server.paths) for server in c.servers.values()] == [0, 0, 1, 0]

    run(test())


def test_no_job_is_lost_when_its_server_ends_connections_after_answers(tmp_path: Path) -> None:
    async def test() -> None:
        async with cloud(tmp_path) as c:
            server = c.servers["node1"]
            for _ in range(20):
                request = await c.send("/first", node="node1")
                await server.release()
                assert await request.answer() == (200, "ok\n")
                server.hang_up()
                request.write("/second", node="node1")
                await server.release()
                assert await request.answer() == (200, "ok\n")

    run(test())


def test_a_job_goes_outside_when_the_rule_fails(tmp_path: Path) -> None:
    program = "core.register_fetches('failing', function() error('no decision') end)\n"
    (tmp_path / "failing.lua").write_text(program, encoding="utf-8")

    def failing(text: str) -> str:
        text = text.replace("lua.index.policy_improvement(txn.jobs)", "lua.failing")
        return text.replace("    lua-load", "    lua-load failing.lua\n    lua-load")

    async def test() -> None:
        async with cloud(tmp_path, failing) as c:
            request = await c.send("/no/decision")
            assert await request.answer() == (200, "ok\n")
            assert c.servers["outside"].paths == ["/no/decision"]

    run(test())


@pytest.mark.parametrize("choice", ["nowhere", "outside", "", "node1"])
def test_a_job_goes_outside_where_the_choice_is_no_server_that_is_up(
    choice: str, tmp_path: Path
) -> None:
    def choosing(text: str) -> str:
        return text.replace("lua.index.policy_improvement(txn.jobs)", f"str({choice})")

    async def test() -> None:
        async with cloud(tmp_path, choosing) as c:
            await c.balancer.command("set server nodes/node1 state maint")
            request = await c.send("/outside")
            assert await request.answer() == (200, "ok\n")
            assert c.servers["outside"].paths == ["/outside"]

    run(test())


def test_a_rule_that_is_not_used_shows_in_the_log(tmp_path: Path) -> None:
    def unused(text: str) -> str:
        return re.sub(r"(?m)^ +use-server %\[var.*\n", "", text)

    async def test() -> None:
        async with cloud(tmp_path, unused) as c:
            request = await c.send("/unused")
            assert await request.answer() == (200, "ok\n")
            await eventually(lambda: len(c.decisions()) == 1)
            (decision,) = c.decisions()
            assert (decision["chosen"], decision["server"]) == ("node0", "outside")

    run(test())


def test_jobs_can_be_turned_away_instead_of_going_outside(tmp_path: Path) -> None:
    def closed(text: str) -> str:
        text = re.sub("(?m)^ +(use-server|server) outside .*\n", "", text)
        refusal = "    http-request return status 503 if { var(txn.node) -m str outside }\n"
        return text.replace("    use-server", refusal + "    use-server", 1)

    async def test() -> None:
        async with cloud(tmp_path, closed) as c:
            for name in NAMES:
                await c.balancer.command(f"set server nodes/{name} state drain")
            request = await c.send("/refused")
            assert (await request.answer())[0] == 503
            await c.balancer.command("set server nodes/node2 state ready")
            await c.send("/taken")
            await eventually(lambda: c.servers["node2"].paths == ["/taken"])

    run(test())


# --- mistakes -------------------------------------------------------------------------------------

EDITS = {
    "the table's syntax": ("indices.lua", "local TABLE = {", "local TABLE = {{", "expected"),
    "the table's version": ("indices.lua", "version = 1", "version = 2", "version 1, not"),
    "an entry": (
        "indices.lua",
        "0.0, 0.1, 0.2, 0.3",
        "0.0, 0.1, 0.2",
        "no finite index of state 4",
    ),
    "the policy": ("haproxy.cfg", "index.policy_", "index.polcy_", "'lua.index.polcy_improvement'"),
}
STARTS = {
    "servers": ("server node1 127.*", "", "backend nodes has no server node1, for node 1"),
    "one more server": (
        "server node1 ",
        "server node7 127.0.0.1:1\n    server node1 ",
        "backend nodes has the server node7, which is no node of the table",
    ),
    "maxconn": ("maxconn 2 ", "maxconn 3 ", "server nodes/node0 has maxconn 3, but its node has 2"),
    "no maxconn": (
        "maxconn 2 ",
        "",
        "server nodes/node0 has maxconn 0, but its node has 2 servers",
    ),
    "backend": ("nodes$", "cloud", "there is no backend nodes (setenv MDPCLOUD_BACKEND names"),
}
PORTS = dict.fromkeys(["outside", *NAMES], 1)


def write(where: Path, text: str) -> None:
    (where / "indices.lua").write_text(to_lua(TABLE), encoding="utf-8")
    (where / "haproxy.cfg").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("what", EDITS)
def test_haproxy_does_not_accept_a_mistake_in(what: str, tmp_path: Path) -> None:
    write(tmp_path, configuration(TABLE, PORTS))
    assert haproxy("-c", "-f", "haproxy.cfg", cwd=tmp_path).returncode == 0
    name, before, after, message = EDITS[what]
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert before in text
    (tmp_path / name).write_text(text.replace(before, after, 1), encoding="utf-8")
    found = haproxy("-c", "-f", "haproxy.cfg", cwd=tmp_path)
    assert found.returncode == 1
    assert message in found.stdout


@pytest.mark.parametrize("what", STARTS)
def test_haproxy_does_not_start_with_other_nodes_than_the_tables(what: str, tmp_path: Path) -> None:
    before, after, message = STARTS[what]
    text = re.sub(r"(?m)^ *bind .*\n", "", configuration(TABLE, PORTS))
    edited = re.sub(f"(?m){before}", after, text)
    assert edited != text
    write(tmp_path, edited)
    found = haproxy("-f", "haproxy.cfg", cwd=tmp_path)
    assert found.returncode == 1
    assert message in found.stdout


def test_the_log_begins_with_the_table_that_is_loaded(tmp_path: Path) -> None:
    table = replace(TABLE, name="three\nnodes", scenario_sha256="3af7" + "0" * 60)
    with running(table, configuration(table, PORTS), tmp_path) as balancer:
        first = balancer.log.read_text(encoding="utf-8").splitlines()[0]
    assert first.endswith(
        "index table: three nodes (cloud_routing), sha256 3af700000000, "
        "policies policy_improvement restless_bandit, nodes node0 node1 node2"
    )


def test_another_name_of_the_backend_can_be_given(tmp_path: Path) -> None:
    text = re.sub("(?m)nodes$", "cloud", configuration(TABLE, PORTS))
    text = text.replace("global\n", "global\n    setenv MDPCLOUD_BACKEND cloud\n", 1)
    text = text.replace("maxconn 2 ", "maxconn 3 ")
    write(tmp_path, text)
    assert "server cloud/node0 has maxconn 3" in haproxy("-f", "haproxy.cfg", cwd=tmp_path).stdout


def test_a_rule_in_a_frontend_fails_and_says_so(tmp_path: Path) -> None:
    def early(text: str) -> str:
        rule = "    http-request set-var(txn.early) lua.index.policy_improvement\n"
        return text.replace("    default_backend", rule + "    default_backend")

    async def test() -> None:
        async with cloud(tmp_path, early) as c:
            assert await c.probe() == ("0,0,0", "node0")
            log = c.balancer.log
            await eventually(lambda: "server doesn't exist" in log.read_text(encoding="utf-8"))

    run(test())


@pytest.mark.slow
def test_the_sample_fits_the_scenario_it_names(tmp_path: Path) -> None:
    scenario = SAMPLE.parents[2] / "experiments" / "base_like_1.toml"
    command = ["indices", str(scenario), "--format"]
    table = IndexTable.from_json(CliRunner().invoke(app, [*command, "json"]).stdout)
    ports = {"outside": 9000, "node0": 9100, "node1": 9101, "node2": 9102}
    sample = SAMPLE.read_text(encoding="utf-8")
    assert [found[0].rstrip() for found in SERVERS.finditer(sample)] == backend_lines(table, ports)
    lua = CliRunner().invoke(app, [*command, "lua"]).stdout
    assert lua == to_lua(table)
    (tmp_path / "indices.lua").write_text(lua, encoding="utf-8")
    found = haproxy("-c", "-f", str(SAMPLE), cwd=tmp_path)
    assert (found.returncode, found.stdout) == (0, "Configuration file is valid\n")


# --- load -----------------------------------------------------------------------------------------


def busy() -> IndexTable:
    """The sample's nodes under a rule that lets queues grow."""
    record = json.loads(TABLE.to_json())
    for node, servers in zip(record["nodes"], (2, 5, 10), strict=True):
        node["servers"] = servers
    for k, indices in enumerate(record["policies"]["policy_improvement"]):
        indices["index"] = [0.05 * max(i - 3 * k, 0) / (k + 1) for i in range(30 + 10 * k)]
    return IndexTable.from_json(json.dumps(record))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_under_load_every_choice_is_the_runtimes_and_no_job_is_lost(
    threads: int, tmp_path: Path
) -> None:
    table, number = busy(), 1000
    choose = rule("policy_improvement", table)
    if not may_open(FILES):
        pytest.skip(f"a process may not have {FILES} files open here (ulimit -Hn)")

    async def load() -> None:
        async with serving(["outside", *NAMES], service=0.005) as (_, ports):
            text = configuration(table, ports, 4000).replace("nbthread 1", f"nbthread {threads}")
            with running(table, text, tmp_path) as balancer:
                clients = [await client(balancer.port, number, name) for name in ("a", "b")]
                answers = [await asyncio.wait_for(one.communicate(), 60) for one in clients]
                assert [json.loads(output) for output, _ in answers] == [{"200": number}] * 2

                async def all_are_logged() -> bool:
                    return len(logged(balancer)) + await dropped_lines(balancer) == 2 * number

                await eventually(all_are_logged)
                assert threads == 2 or await dropped_lines(balancer) == 0
                decisions = logged(balancer)
        assert len({one["path"] for one in decisions}) == len(decisions)
        for one in decisions:
            assert one["chosen"] == choose([int(x) for x in one["jobs"].split(",")]), one
            assert one["server"] == one["chosen"], one
            assert one["status"] == "200"
        assert set(Counter(one["chosen"] for one in decisions)) == {"outside", *NAMES}

    run(load())


@pytest.mark.slow
def test_with_clients_that_go_away_and_servers_taken_out_no_job_is_lost_or_miscounted(
    tmp_path: Path,
) -> None:
    table, rng, number = busy(), random.Random(3), 800
    choose = rule("policy_improvement", table)

    async def job(port: int, i: int) -> int | None:
        await asyncio.sleep(1.5 * rng.random())
        request = await Request.send(port, f"/{i}")
        if i % 5 == 0:
            await asyncio.sleep(0.01 * rng.random())
            request.close()
            return None
        status, _ = await request.answer()
        request.close()
        return status

    async def upkeep(balancer: Balancer) -> None:
        for name, state in zip(NAMES * 4, ["maint", "drain"] * 6, strict=True):
            await balancer.command(f"set server nodes/{name} state {state}")
            await asyncio.sleep(0.1)
            await balancer.command(f"set server nodes/{name} state ready")

    async def load() -> None:
        async with serving(["outside", *NAMES], service=0.005) as (servers, ports):
            with running(table, configuration(table, ports), tmp_path) as balancer:
                jobs = (job(balancer.port, i) for i in range(number))
                _, *statuses = await asyncio.gather(upkeep(balancer), *jobs)
                await Cloud(balancer, servers).settled()
        assert Counter(statuses) == {200: number * 4 // 5, None: number // 5}
        decisions = logged(balancer)
        assert any("!" in one["jobs"] for one in decisions)
        for one in decisions:
            jobs_read = [FULL if "!" in x else int(x) for x in one["jobs"].split(",")]
            assert one["chosen"] == choose(jobs_read), one

    run(load())


FULL = 1000  # jobs at which every node of the busy table refuses


@pytest.mark.slow
def test_with_one_thread_the_jobs_read_are_all_jobs_of_the_backend(tmp_path: Path) -> None:
    table = busy()

    def counting(text: str) -> str:
        """Also note the jobs of the backend, the one to be sent among them, and those outside."""
        text = re.sub("(?m)^ +http-request set-var.txn.node", COUNTED, text, count=1)
        return text.replace("%ST ", "%ST all=%[var(txn.all)] out=%[var(txn.out)] ")

    async def jobs(port: int) -> None:
        for _ in range(30):
            request = await Request.send(port, "/")
            assert (await request.answer())[0] == 200
            request.close()

    async def load() -> list[int]:
        async with serving(["outside", *NAMES], service=0.005) as (_, ports):
            with running(table, counting(configuration(table, ports)), tmp_path) as balancer:
                await asyncio.gather(*(jobs(balancer.port) for _ in range(30)))
                await eventually(lambda: len(logged(balancer)) == 900)
                log = balancer.log.read_text(encoding="utf-8")
        found = re.findall(r"jobs=(\S+) .* all=(\d+) out=(\d+) ", log)
        return [int(every) - 1 - int(out) - sum(map(int, x.split(","))) for x, every, out in found]

    missing = asyncio.run(load())
    assert len(missing) == 900
    assert missing.count(0) >= 0.98 * 900, Counter(missing)


COUNTED = """\
    http-request set-var(txn.all) be_conn(nodes)
    http-request set-var(txn.out) srv_conn(nodes/outside)
    http-request set-var(txn.node"""


async def client(port: int, number: int, name: str) -> asyncio.subprocess.Process:
    arguments = [str(CLIENTS), str(port), str(number), name]
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
