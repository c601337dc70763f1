"""What is known of an upstream when it fails: whose key it refused, which setting to change, what it serves.

Every sentence about an upstream that cannot be used is made here or is in ``core.error_guide``.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from toolglot.config.upstreams import Upstream
from toolglot.core.errors import UpstreamResponseError
from toolglot.wires import all_wires

KEY_STATUSES: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
FALLBACK_NAME: Final = "default"
"""The name of the upstream of ``--base-url``."""
LISTED: Final = 10
NAME_LENGTH: Final = 100
OWN_KEY, NO_KEY, CLIENT_KEY = "upstream_key_refused", "upstream_key_missing", "client_key_refused"


def explain_refused_key(error: UpstreamResponseError, upstream: Upstream, *, sent_client_key: bool) -> None:
    """Say whose key an upstream refused, and which setting to change. ``sent_client_key``: it got the client's.

    The code of the upstream gives way to ours: clients take ``invalid_api_key`` for a problem of their own key.
    """
    place, end = f"Upstream {upstream.name!r} at {upstream.address}", f"(status {error.status}): {error.message}"
    own = name_credentials(upstream)
    if own:
        error.code = OWN_KEY
        error.message = f"{place} refused the gateway's own {own}, not the client's key {end}"
        error.step = f"set the right {name_key_setting(upstream, own)}, then start the gateway again."
    elif sent_client_key:
        error.code = CLIENT_KEY
        why = "which the gateway passed on because it has none of its own for it"
        error.message = f"{place} refused the client's API key, {why} {end}"
    else:
        error.code = NO_KEY
        error.message = f"{place} wants an API key, and the gateway has none for it {end}"
        error.step = f"set {name_key_setting(upstream, 'API key')}, then start the gateway again."


def name_credentials(upstream: Upstream) -> str:
    """What the gateway presents to an upstream: its key, its cookies, a header; empty for nothing."""
    if upstream.api_key:
        return "API key"
    if upstream.cookies:
        return "cookies"
    return "headers" if any(name.lower() in CREDENTIAL_HEADERS for name in upstream.headers) else ""


CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")


def name_key_setting(upstream: Upstream, credentials: str) -> str:
    """The setting that holds what is presented to an upstream, with the variables that set it."""
    field = {"cookies": "cookies", "headers": "headers"}.get(credentials, "api_key")
    variables = [all_wires()[upstream.wire].variables.get(field, "")]
    if upstream.name == FALLBACK_NAME and field == "api_key":
        variables += ["TOOLGLOT_API_KEY", "OPENAI_API_KEY"]
    named = " or ".join(filter(None, variables))
    return f"{field} of upstream {upstream.name!r}{f' ({named})' if named else ''}"


def add_served_models(error: UpstreamResponseError, names: Sequence[str]) -> None:
    """Add the models that the upstream serves to an error about a model that it does not know."""
    if names:
        error.message = f"{error.message} It serves: {list_names(names)}."


def list_names(names: Sequence[str]) -> str:
    """A bounded list of model names."""
    shown = [name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…" for name in names[:LISTED]]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(shown) + more
