"""The part of ``toolglot sim`` for this wire: options, and hints how to use the running server."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from toolglot.sim.qwen_web.chats import SEMANTICS
from toolglot.sim.qwen_web.errors import RISK_PAGES
from toolglot.sim.qwen_web.faults import FAULTS
from toolglot.sim.qwen_web.model import echo
from toolglot.sim.qwen_web.options import DEFAULT_TOKEN, MODEL_LISTS, ChatSimOptions

__all__ = ["EXAMPLES", "FAULTS", "OPTIONS", "add_arguments", "describe", "make_options"]

OPTIONS = ("token", "semantics", "lock", "expire_after", "waf_after", "delete_after", "risk_page", "model_list", "echo")
EXAMPLES = """\
  toolglot sim --wire qwen_web                       a stateful web chat: chats, one message per request
  toolglot sim --wire qwen_web --echo                answer with all messages that the model sees
  toolglot sim --wire qwen_web --semantics whole_chat --fault thinking_summary --fault dual_response
  toolglot sim --wire qwen_web --expire-after 20     the token expires after 20 requests
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this wire, all without a default, so that one that was given is recognised."""
    group = parser.add_argument_group("only with --wire qwen_web")
    group.add_argument("--token", metavar="T", help=f"the valid token (default: {DEFAULT_TOKEN})")
    group.add_argument(
        "--semantics",
        choices=SEMANTICS,
        help="what the model sees: the path in the tree, or all of the chat (default: path)",
    )
    group.add_argument(
        "--lock", type=float, metavar="S", help="seconds for which an aborted stream locks its chat (default: 3)"
    )
    group.add_argument("--expire-after", type=int, metavar="N", help="the token expires after N requests")
    group.add_argument("--waf-after", type=int, metavar="N", help="the risk page answers after N requests")
    group.add_argument("--delete-after", type=int, metavar="N", help="a chat is deleted after N completions")
    group.add_argument("--risk-page", choices=RISK_PAGES, help="the form of the risk page (default: waf_html)")
    group.add_argument(
        "--model-list", choices=MODEL_LISTS, help="which of the two addresses list the models (default: both)"
    )
    group.add_argument("--echo", action="store_true", default=None, help="answer with all messages that the model sees")


def make_options(shared: Mapping[str, Any], arguments: argparse.Namespace) -> ChatSimOptions:
    """The options of the server. Raises: ``UsageError``."""
    given = {name: getattr(arguments, name) for name in OPTIONS if getattr(arguments, name) is not None}
    if given.pop("echo", False):
        given["brain"] = echo
    return ChatSimOptions(**shared, **given)


def describe(address: str, options: ChatSimOptions) -> Iterator[str]:
    """The lines printed once the server is listening."""
    yield f"toolglot sim: a simulated Qwen web chat (no real one) at {address}, model 'sim'\n"
    yield "  settings of a gateway in front of it:\n"
    settings = {
        "name": '"sim"',
        "wire": '"qwen_web"',
        "base_url": f'"{address}"',
        "api_key": '"env:QWEN_TOKEN"',
        "accept_terms": "true",
    }
    yield "    [[upstream]]\n"
    for name, value in settings.items():
        yield f"    {name} = {value}\n"
    yield f"  QWEN_TOKEN={options.token} toolglot serve --config FILE\n"
    yield f"  curl {address}/sim/seen      # what the model saw\n"
