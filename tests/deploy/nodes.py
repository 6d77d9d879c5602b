"""Servers that hold what they are asked until they are told to answer, and requests to them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
PATIENCE = 10.0  # seconds until a test gives up waiting


class HeldServer:
    """An HTTP server that answers a request when it is released, the oldest first.

    Parameters
    ----------
    service : float, optional
        Seconds after which it answers unasked.
    """

    def __init__(self, service: float | None = None) -> None:
        self.service = service
        self.paths: list[str] = []
        self._held: deque[asyncio.Future[None]] = deque()
        self._handlers: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, port: int = 0) -> int:
        """Listen, at a free port if none is given; the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, backlog=4096)
        self._port: int = self._server.sockets[0].getsockname()[1]
        return self._port

    async def stop(self) -> int:
        """End all connections and listen no more; the port."""
        self._server.close()
        for held in self._held:
            held.cancel()
        self.hang_up()
        await asyncio.wait_for(asyncio.gather(*self._handlers, return_exceptions=True), PATIENCE)
        return self._port

    def hang_up(self) -> None:
        """End all connections."""
        for writer in list(self._writers):
            writer.close()

    async def release(self) -> None:
        """Answer the oldest request, once there is one."""
        await eventually(lambda: bool(self._held))
        self._held.popleft().set_result(None)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.ensure_future(self._serve(reader, writer))
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while head := await _head(reader):
                self.paths.append(head.split(" ")[1])
                await self._hold()
                writer.write(ANSWER)
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _hold(self) -> None:
        if self.service is not None:
            await asyncio.sleep(self.service)
            return
        self._held.append(asyncio.get_running_loop().create_future())
        await self._held[-1]


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return ""


@asynccontextmanager
async def serving(
    names: Iterable[str], service: float | None = None
) -> AsyncIterator[tuple[dict[str, HeldServer], dict[str, int]]]:
    """Servers by name, and their ports; the one called outside answers at once."""
    servers = {name: HeldServer(0.0 if name == "outside" else service) for name in names}
    ports = {name: await server.start() for name, server in servers.items()}
    try:
        yield servers, ports
    finally:
        for server in servers.values():
            await server.stop()


async def eventually(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait until a condition holds."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while True:
        found = condition()
        if found if isinstance(found, bool) else await found:
            return
        assert asyncio.get_running_loop().time() < end, "waited in vain"
        await asyncio.sleep(0.001)


class Request:
    """A request on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def send(cls, port: int, path: str, **headers: str) -> Request:
        request = cls(*await asyncio.open_connection("127.0.0.1", port))
        request.write(path, **headers)
        return request

    def write(self, path: str, **headers: str) -> None:
        """One more request on the same connection."""
        lines = [f"GET {path} HTTP/1.1", "Host: nodes"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def write_body(self, text: str) -> None:
        self._writer.write(text.encode())

    async def answer(self) -> tuple[int, str]:
        """Status and body; the connection stays open."""
        return await asyncio.wait_for(self._answer(), PATIENCE)

    async def _answer(self) -> tuple[int, str]:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
        body = await self._reader.readexactly(length)
        return int(head.split(" ")[1]), body.decode()

    def close(self) -> None:
        self._writer.close()
