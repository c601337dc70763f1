"""``toolglot probe``: test the tool support of a live server and print a profile."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from toolglot.cli.common_options import add_gateway_options, load_settings
from toolglot.cli.exit_codes import OK, USAGE_ERROR, AddParser
from toolglot.config import Settings
from toolglot.core.errors import UsageError
from toolglot.core.installation import name_install_command

if TYPE_CHECKING:
    from toolglot.server.upstream.probe import Finding

EXAMPLES = """\
examples:
  toolglot probe --base-url http://127.0.0.1:8080/v1                    the first model in its list
  toolglot probe --base-url http://127.0.0.1:8080/v1 --model qwen3-coder
  TOOLGLOT_API_KEY=... toolglot probe --base-url https://host/v1 --model m --json
"""


def add(add_parser: AddParser) -> None:
    probe = add_parser(
        description="Send a live server a few short requests with a tool: native, streamed, for two calls, with a"
        " call required, and with the tool described in the prompt. Print the findings and a matching profile.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    probe.add_argument("--json", action="store_true", help="print one JSON document")
    add_gateway_options(probe)
    probe.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    settings = load_settings(arguments)
    if not settings.upstreams:
        raise UsageError("probe needs a server: give --base-url")
    try:
        import toolglot.server.upstream.probe  # noqa: F401
    except ImportError as error:
        raise UsageError(f"probe needs the server extra: {name_install_command('server')} ({error})") from None
    document = asyncio.run(run_tests(settings, quiet=arguments.json))
    if arguments.json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\nThe findings as a profile (for the file set by tool_calling.profiles):\n\n" + document["profile"])
    return OK if any(one["result"] == "yes" for one in document["findings"]) else USAGE_ERROR


async def run_tests(settings: Settings, quiet: bool = False) -> dict[str, Any]:
    """Run all tests in sequence, so that a small server handles one request at a time.

    Returns: a JSON document with the model, the findings and the profile.
    """
    from time import monotonic, time

    from toolglot.server.upstream.discovery import load_capabilities
    from toolglot.server.upstream.probe import TESTS, Probe, suggest

    findings: dict[str, Finding] = {}

    def report(finding: Finding) -> None:
        findings[finding.name] = finding
        if not quiet:
            print(f"{finding.name:<24} {finding.result:<7} {finding.seconds:5.1f} s  {finding.detail}", flush=True)

    probe = Probe(settings, load_capabilities(settings, time), monotonic)
    report(await probe.list_models())
    facts, rule = await probe.find_rule()
    report(facts)
    for test in TESTS:
        report(await probe.run(test))
    profile = "\n".join(suggest(probe.upstream, probe.model, findings, rule))
    return {"model": probe.model, "findings": [asdict(one) for one in findings.values()], "profile": profile}
