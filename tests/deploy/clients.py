"""Many requests at once: ``python clients.py PORT NUMBER NAME`` prints the statuses as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter

FILES = 10_000  # that HAProxy needs for 4000 connections, of which 2000 jobs use half


async def _request(port: int, path: str, start: asyncio.Barrier) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await start.wait()
    writer.write(f"GET {path} HTTP/1.1\r\nHost: nodes\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer.split(b" ")[1].decode() if answer.startswith(b"HTTP/1.1 ") else "lost"


async def _requests(port: int, number: int, name: str) -> Counter[str]:
    start = asyncio.Barrier(number)
    paths = (f"/{name}/{i}" for i in range(number))
    return Counter(await asyncio.gather(*(_request(port, path, start) for path in paths)))


def may_open(files: int) -> bool:
    """Whether this process may have so many files open; raises its limit to that if need be."""
    import resource  # of Unix, as HAProxy is

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY or now >= files:
        return True
    if most != resource.RLIM_INFINITY and most < files:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return True


if __name__ == "__main__":
    may_open(FILES)
    print(json.dumps(asyncio.run(_requests(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))))
