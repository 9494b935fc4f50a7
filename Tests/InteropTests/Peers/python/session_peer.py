"""The peer that has sessions, written from the protocol document: see ../README.md for what its commands do."""

import argparse
import asyncio
import contextlib

from session_link import Cuts, Server
from session_messages import Terms
from session_methods import PeerMethods
from session_scenarios import SCENARIOS


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("server", help="serves the methods of interop.Peer until it is ended")
    server.add_argument("--version", type=int, default=1, help="the version of the protocol that it speaks")
    server.add_argument("--maximum-sessions", type=int, default=1_000)
    server.add_argument("--kept", type=float, default=120, help="seconds for which it keeps a session")
    server.add_argument("--delay", type=float, default=0, help="seconds that it takes to decide about a client")
    client = commands.add_parser("client", help="does what the scenario says, and checks what comes")
    client.add_argument("port", type=int)
    client.add_argument("scenario", choices=SCENARIOS)
    client.add_argument("--count", type=int, default=3_000, help="messages of the scenario exchange")
    for command in (server, client):
        command.add_argument("--frames", type=int, default=65_536, help="frames of the window that it grants")
        command.add_argument("--bytes", type=int, default=8 << 20, help="bytes of the window that it grants")
        command.add_argument("--credit", type=int, default=256 << 10, help="the credit with which streams to it begin")
        command.add_argument("--maximum-requests", type=int, default=1_024)
        command.add_argument("--maximum-frame", type=int, default=4 << 20)
        command.add_argument("--cuts", type=int, default=0, help="connections that it cuts")
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--forgetful", action="store_true", help="drops what no handler has begun when it resumes")
    options = parser.parse_args()
    options.terms = Terms(
        options.frames, options.bytes, options.credit, options.maximum_requests, options.maximum_frame
    )
    if options.command == "server":
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(options))
    else:
        asyncio.run(asyncio.wait_for(SCENARIOS[options.scenario](options.port, options), 100))


async def serve(options):
    methods = PeerMethods(Cuts(options.cuts, options.seed))
    methods.server = Server(
        methods.requests, methods.pushes, options.terms, methods.cuts, options.maximum_sessions, options.version,
        options.forgetful, options.kept, options.delay,
    )
    await methods.server.serve()


if __name__ == "__main__":
    main()
