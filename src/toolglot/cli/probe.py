"""``toolglot probe``: put a live server to the test and print what it can do."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolglot.cli.common_options import add_options, load_settings
from toolglot.cli.exit_codes import OK, WRONG_USE, Commands
from toolglot.config import Settings
from toolglot.core.errors import UsageError

if TYPE_CHECKING:
    from toolglot.server.upstream.probe import Finding

EXAMPLES = """\
examples:
  toolglot probe --base-url http://127.0.0.1:8080/v1                    the first model it lists
  toolglot probe --base-url http://127.0.0.1:8080/v1 --model qwen3-coder
  TOOLGLOT_API_KEY=... toolglot probe --base-url https://host/v1 --model m --json
"""


def add(commands: Commands) -> None:
    probe = commands.add_parser(
        "probe",
        help="test what a server makes of tools, and print a profile for it",
        description="Ask a live server a handful of short questions with a tool: natively, streamed, for two calls,"
        " with a call required, and with the tool taught as text. Print what it can do and the profile that says so.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    probe.add_argument("--json", action="store_true", help="print one JSON document")
    add_options(probe)
    probe.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    settings = load_settings(arguments)
    if not settings.upstreams:
        raise UsageError("probe needs a server: give --base-url")
    try:
        import toolglot.server.upstream.probe  # noqa: F401
    except ImportError as error:
        raise UsageError(f"probe needs more than the library: pip install 'toolglot[server]' ({error})") from None
    document = asyncio.run(test_all(settings, quiet=arguments.json))
    if arguments.json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\nWhat was found, as a profile (a file named by tool_calling.profiles):\n\n" + document["profile"])
    return OK if any(one["result"] == "yes" for one in document["findings"]) else WRONG_USE


async def test_all(settings: Settings, quiet: bool = False) -> dict[str, Any]:
    """All tests, one after the other: a small server should not have to do two things at once."""
    from time import monotonic, time

    from toolglot.server.upstream.discovery import load_capabilities
    from toolglot.server.upstream.probe import TESTS, Probe, suggest

    findings: dict[str, Finding] = {}

    def tell(finding: Finding) -> None:
        findings[finding.name] = finding
        if not quiet:
            print(f"{finding.name:<24} {finding.result:<7} {finding.seconds:5.1f} s  {finding.detail}", flush=True)

    probe = Probe(settings, load_capabilities(settings, time), monotonic)
    tell(await probe.list_models())
    facts, rule = await probe.find_rule()
    tell(facts)
    for test in TESTS:
        tell(await probe.run(test))
    profile = "\n".join(suggest(probe.upstream, probe.model, findings, rule))
    return {"model": probe.model, "findings": [asdict(one) for one in findings.values()], "profile": profile}
