"""The effective settings as a JSON document, with the source of each, and with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from toolglot.config.keys import MASK, KeyHash, Secret, mask_address
from toolglot.config.rollout import Plan
from toolglot.config.settings import SETTINGS, Settings


def describe_settings(settings: Settings) -> dict[str, Any]:
    """The settings as a JSON document, with secrets masked."""
    return {
        "settings": {
            one.key: {
                "value": mask_value(getattr(getattr(settings, one.section), one.field)),
                "source": settings.sources.get(one.key, ""),
            }
            for one in SETTINGS
        },
        "upstreams": [{one.name: mask_value(getattr(up, one.name)) for one in fields(up)} for up in settings.upstreams],
        "models": [{one.name: getattr(model, one.name) for one in fields(model)} for model in settings.models],
        "sources": {
            key: source for key, source in settings.sources.items() if key not in {one.key for one in SETTINGS}
        },
        "notes": list(settings.notes),
    }


def mask_value(value: Any) -> Any:
    """The value with secrets masked."""
    match value:
        case Secret() | Plan():
            return str(value)
        case KeyHash():
            return MASK
        case tuple():
            return [mask_value(item) for item in value]
        case Mapping():
            return dict.fromkeys(value, MASK)
        case str() if "://" in value:
            return mask_address(value)
    return value
