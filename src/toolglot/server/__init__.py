"""The HTTP server and the connections to upstreams; for programs that run the gateway themselves:

    async with listening(make_settings(base_url="http://127.0.0.1:8080/v1", port=0)) as address: ...
    app = AsgiGateway(make_settings(base_url="http://127.0.0.1:8080/v1"))

Both are imported on first use, because other modules of this package are needed where no gateway runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolglot.server.asgi import AsgiGateway
    from toolglot.server.lifecycle import listening

__all__ = ["AsgiGateway", "listening"]


def __getattr__(name: str) -> Any:
    if name == "AsgiGateway":
        from toolglot.server.asgi import AsgiGateway

        return AsgiGateway
    if name == "listening":
        from toolglot.server.lifecycle import listening

        return listening
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
