"""``toolglot serve``: the gateway."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType
from urllib.parse import urlsplit

from toolglot.cli.common_options import add_options, follow_file, load_settings
from toolglot.cli.config import mask_address
from toolglot.cli.exit_codes import OK, WRONG_USE, Commands
from toolglot.cli.workers import supervise
from toolglot.config import LiveReload, ModelSettings, Settings, Upstream, check_binding
from toolglot.core.errors import ClientError, UsageError
from toolglot.gateway.telemetry.log import log_to

EXAMPLES = """\
examples:
  toolglot serve                                         with the embedded model: no key, no network
  toolglot serve --base-url http://127.0.0.1:8080/v1     in front of any OpenAI-compatible server
  OPENAI_BASE_URL=... OPENAI_API_KEY=... toolglot serve  the same from the environment
  toolglot serve --config toolglot.toml                  several upstreams and models ('toolglot config show')
  toolglot serve --config config.yaml                    a LiteLLM file, as it is
"""

EMBEDDED_DIALECT = "hermes"
LOOK_SECONDS = 2.0
"""How long a change of the settings file may go unnoticed."""
REACH_SECONDS = 5.0
SMALL = (
    "this model is small and slow: good to try single calls, far too small for an agent (it reads 8,192 tokens; Claude"
    " Code, Codex and OpenCode send 8,000 to 30,000 before you say a word). For an agent start the gateway in front of"
    " a larger model: toolglot serve --base-url http://127.0.0.1:8080/v1"
)
TRY_TOOL = (
    '{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city",'
    '"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}'
)


def add(commands: Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="run the gateway",
        description="Run the gateway: an OpenAI-compatible server that gives tool calling to models that only write"
        " text. With nothing configured it starts a small embedded model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(serve)
    serve.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    settings = _fix_port(load_settings(arguments))
    check_binding(settings)
    follower = follow_file(arguments, settings)
    with _fed(settings) as fed:
        if fed.server.workers > 1:
            log_to(level=fed.server.log_level)
            _import_server().warm_up(fed)  # workers are forked, so this is done once for all of them
            return supervise(fed.server.workers, partial(_run_worker, fed, follower))
        _run(fed, lambda address: _greet(fed, address), follower)
    return OK


def _run_worker(settings: Settings, follower: LiveReload | None, announces: bool) -> int:
    """Serve as one of several processes; the first one tells people about all of them."""
    try:
        _run(settings, lambda address: _greet(settings, address) if announces else None, follower)
    except ClientError as error:
        if announces:
            print(f"toolglot: {error.message}", file=sys.stderr)
        return WRONG_USE
    return OK


@contextmanager
def _fed(settings: Settings) -> Iterator[Settings]:
    """The settings with somebody who answers: the embedded model if nothing is configured."""
    if settings.upstreams:
        yield settings
        return
    from toolglot.server.upstream.embedded import start

    print("No upstream is configured: starting the embedded model ...", file=sys.stderr, flush=True)
    with start() as local:
        upstream = Upstream(name="embedded", base_url=local.base_url, coached=True)
        yield settings.answered_by(upstream, ModelSettings(model=local.model, dialect=EMBEDDED_DIALECT, mode="text"))


def _fix_port(settings: Settings) -> Settings:
    """Several processes must agree on a port: where any will do, one is chosen for all."""
    server = settings.server
    if server.workers == 1 or server.port:
        return settings
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.create_server((server.host, 0), family=family, reuse_port=True) as free:
        return replace(settings, server=replace(server, port=free.getsockname()[1]))


def _run(settings: Settings, ready: Callable[[str], None], follower: LiveReload | None) -> None:
    import asyncio

    serve = _import_server().serve
    try:
        import uvloop

        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
    except ImportError:
        loop_factory = None

    async def serve_and_follow() -> None:
        following = asyncio.create_task(_follow(follower)) if follower is not None else None
        try:
            await serve(settings, ready)
        finally:
            if following is not None:
                following.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serve_and_follow())


def _import_server() -> ModuleType:
    try:
        from toolglot.server import lifecycle as serving
    except ImportError as error:
        raise UsageError(f"the gateway needs more than the library: pip install 'toolglot[server]' ({error})") from None
    return serving


async def _follow(follower: LiveReload) -> None:
    """Every process looks for itself; nobody has to be told."""
    import asyncio

    while True:
        await asyncio.sleep(LOOK_SECONDS)
        follower.check()


def _greet(settings: Settings, address: str) -> None:
    """What a person needs to know, and something to paste."""
    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    key = "$TOOLGLOT_KEY" if settings.server.keys else "none"
    upstream = settings.upstreams[-1]
    if upstream.coached:
        print(f"note: {SMALL}", file=sys.stderr)
    print(
        f"""toolglot is listening. Point any OpenAI client at

    {address}/v1        (upstream: {upstream.name}, {mask_address(upstream.base_url)})

Try it:

    curl -s {address}/v1/chat/completions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '
      {{"model": "any", "messages": [{{"role": "user", "content": "What is the weather in Paris?"}}],
       "tools": [{TRY_TOOL}]}}'

    from openai import OpenAI
    client = OpenAI(base_url="{address}/v1", api_key="{key}")
    answer = client.chat.completions.create(
        model="any", messages=[{{"role": "user", "content": "What is the weather in Paris?"}}],
        tools=[{TRY_TOOL}])
    print(answer.choices[0].message.tool_calls)

Stop with Ctrl-C.""",
        flush=True,
    )
    threading.Thread(target=_tell_unreachable, args=(settings,), daemon=True).start()


def find_unreachable(settings: Settings) -> Iterator[str]:
    """For each upstream that accepts no connection: what is wrong, and what to do about it."""
    for upstream in settings.upstreams:
        parts = urlsplit(upstream.base_url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((parts.hostname or "", port), timeout=REACH_SECONDS).close()
        except (OSError, UnicodeError) as error:
            problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield (
                f"upstream {upstream.name!r} at {mask_address(upstream.base_url)} does not answer ({problem}): requests"
                " will fail until it runs. Start it, or give another address (--base-url, OPENAI_BASE_URL, base_url)"
            )


def _tell_unreachable(settings: Settings) -> None:
    for problem in find_unreachable(settings):
        print(f"warning: {problem}.", file=sys.stderr, flush=True)
