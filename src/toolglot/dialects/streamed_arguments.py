"""The arguments of a call while they are being read.

Strategy. A codec passes keys and values as it finds them, and they become JSON text at once, in pieces.
``choose_receiver`` decides whether the pieces are buffered, emitted or discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from toolglot.core.events import Defect, Reason
from toolglot.core.lenient_json import Value, dump, escape, parse
from toolglot.core.schema.aliases import Alias
from toolglot.core.schema.toolset import ANY, CompiledTool, SchemaType, Typed, coerce_value

_NULL_SPELLINGS = (None, "", "null", "None")
"""What models write for an optional argument that they omit."""


@lru_cache(maxsize=1024)
def spell_key(key: str) -> str:
    return f'"{escape(key)}"'


def _discard(piece: str) -> None:
    """Discard the text of a dropped argument."""


class StreamedArguments(Struct, eq=False, kw_only=True):
    """The arguments of one call read so far, and their defects."""

    tool: CompiledTool | None
    repairs: dict[str, None]
    keys: dict[str, bool] = {}
    """The arguments that were read, and whether each is part of the call: some nulls and undeclared ones are
    dropped."""
    written: bool = False
    """At least one argument is part of the call."""
    dropping: bool = False
    """The open string value belongs to a dropped argument."""
    defects: list[Defect] = []
    pending: list[str] = []
    aliases: list[Alias] = []
    """Aliases of arguments; resolved at the end of the call."""
    suspects: dict[str, str] = {}
    """Declared arguments whose damaged keys may be text in a value, and what holds this value."""
    write: Callable[[str], None] = _discard
    """Receives JSON text of the arguments: buffers it, or emits it once the call is live."""

    def choose_receiver(self) -> None:
        """Set ``write``: what receives the next piece of the arguments."""
        raise NotImplementedError

    def repair(self, name: str) -> None:
        self.repairs[name] = None

    def add_defect(self, reason: Reason, where: str, found: str, expected: str) -> None:
        self.defects.append(Defect(reason=reason, where=where, found=found, expected=expected))

    def suspect(self, holder: str, *keys: str) -> None:
        """Note arguments that a value may have swallowed; they count if the call lacks them to its end."""
        lacking = (key for key in keys if self.declares(key) and key not in self.keys)
        self.suspects.update(dict.fromkeys(lacking, holder))

    def reject_suspects(self) -> None:
        """Add a defect for every argument that a value seems to have swallowed."""
        for key, holder in self.suspects.items():
            if key not in self.keys:
                found, expected = f"what may be {key}, damaged", f"{key} as a parameter, or no such mark"
                self.add_defect(Reason.MALFORMED, holder, found, expected)
        self.suspects.clear()

    def parameter_type(self, key: str) -> SchemaType:
        if self.tool is None:
            return ANY
        parameters = self.tool.parameters
        return parameters.properties.get(key) or parameters.property_type(key)

    @property
    def declared(self) -> Iterable[str]:
        """The arguments that the tool declares."""
        return () if self.tool is None else self.tool.parameters.properties

    def declares(self, key: str) -> bool:
        return self.tool is not None and key in self.tool.parameters.properties

    def admits(self, key: str) -> bool:
        """Whether the tool declares this argument, or the key may be an alias of one not given yet."""
        return self.declares(key) or bool(self.may_mean(key))

    def may_mean(self, key: str) -> str:
        """The argument that the key is an alias of, if it was not given yet, else ""."""
        name = self.tool.aliases.get(key, "") if self.tool is not None else ""
        return "" if name in self.keys else name

    def may_be_misspelt(self, key: str) -> str:
        """The undeclared key, if it may be a misspelt one whose argument must wait for the end of the call, else ""."""
        raise NotImplementedError

    @property
    def is_open_ended(self) -> bool:
        """Whether the tool takes undeclared arguments."""
        return self.tool is None or not self.tool.parameters.properties

    @property
    def has_required(self) -> bool:
        """Whether all required arguments were read."""
        return self.tool is None or self.tool.parameters.required.issubset(self.keys)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is missing, wrong, undeclared or lacks required quotes."""
        declared = all(map(self.declares, self.keys))
        return declared and self.has_required and not self.defects and "unquoted_value" not in self.repairs

    @property
    def is_plausible(self) -> bool:
        """Whether the arguments may be meant for the tool: its schema does not forbid all of them."""
        return not self.keys or any(kept or self.declares(key) for key, kept in self.keys.items())

    def text(self, piece: str) -> None:
        """Append to the open string value."""
        self.write(escape(piece))

    def _put(self, key: str, value: str) -> None:
        """Write a key and its value, or the beginning of the value."""
        if self.keys.get(key):
            self.add_defect(Reason.DUPLICATE_ARGUMENT, f"argument {key}", "a second value", "one value")
        if name := self.may_mean(key) or (not self.declares(key) and self.may_be_misspelt(key)):
            self._hold_alias(Alias(key, name, len(self.pending) + 1), value)
        else:
            self.write(f"{',' if self.written else '{'}{spell_key(key)}:{value}")
        self.keys[key] = self.written = True

    def _drops(self, key: str) -> bool:
        """Drop the argument if the tool's schema forbids it; whether it was dropped."""
        if not self.forbids(key) or self.may_mean(key):
            return False
        self._omit(key, "dropped_undeclared_argument")
        return True

    def _omit(self, key: str, repair: str) -> None:
        self.keys.setdefault(key, False)
        self.repair(repair)

    def _hold_alias(self, alias: Alias, value: str) -> None:
        """Buffer the arguments from an alias on, with its key as a separate piece."""
        self.write = self.pending.append
        self.pending += "," if self.written else "{", spell_key(alias.key), f":{value}"
        self.aliases.append(alias)

    def forbids(self, key: str) -> bool:
        return self.tool is not None and self.tool.parameters.closed and self.tool.parameters.forbids(key)

    def drop_arguments(self, keys: list[str]) -> None:
        """Remove arguments from the buffered ones."""
        text = "".join(self.pending)
        waiting = parse(f"{{{text[1:]}}}").value
        assert isinstance(waiting, dict)
        for key in keys:
            waiting.pop(key, None)
            self.keys[key] = False
            self.repair("dropped_undeclared_argument")
        self.written = text[0] == "," or bool(waiting)
        self.pending[:] = [text[0] + dump(waiting)[1:-1]] if waiting else []

    def open_text(self, key: str) -> None:
        if self._drops(key):
            self.dropping, self.write = True, _discard
        else:
            self._put(key, '"')

    def close_text(self) -> None:
        if self.dropping:
            self.dropping = False
            self.choose_receiver()
        else:
            self.write('"')

    def add(self, key: str, typed: Typed) -> None:
        """Add one whole argument."""
        if self._drops(key):
            return
        if typed.defects and typed.value in _NULL_SPELLINGS and self.tool is not None and key not in self.tool.required:
            self._omit(key, "omitted_null")
            return
        if typed.defects:  # the call is rejected; a value that was sent could not be corrected any more
            self.defects.extend(typed.defects)
            self.keys[key] = True
        else:
            self._put(key, dump(typed.value))
        for name in typed.repairs:
            self.repair(name)

    def add_members(self, value: Value) -> None:
        """Add the members of an object as arguments."""
        for key, item in value.items() if isinstance(value, dict) else ():
            self.add_value(key, item)

    def add_client_values(self, values: Mapping[str, str]) -> None:
        """Add the arguments as the client itself parses them, without schema coercion."""
        self.tool = None
        for key, value in values.items():
            self._put(key, dump(value))

    def add_value(self, key: str, value: Value) -> None:
        self.add(key, coerce_value(value, self.parameter_type(key), f"argument {key}"))
