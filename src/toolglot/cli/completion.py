"""``toolglot completion``: a script that completes commands, options and values in bash, zsh or fish.

Strategy. The scripts are generated from the parsers, so they know every command. Each contains one table per question:
which commands and options there are after the words so far, and which values an option takes. The words so far are
followed through the table, past options and their values, as argparse does. Nothing is asked of toolglot while a person
types, so completion costs no start of Python.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolglot.cli.exit_codes import OK, AddParser, list_actions

EXAMPLES = """\
examples:
  toolglot completion bash > ~/.local/share/bash-completion/completions/toolglot
  toolglot completion zsh > ~/.zfunc/_toolglot                           with ~/.zfunc in fpath, before compinit
  toolglot completion fish > ~/.config/fish/completions/toolglot.fish
  source <(toolglot completion bash)                                     for this shell only
"""
PROGRAM: Final = "toolglot"
FILES: Final = frozenset({"FILE", "LOGFILE", "DIR"})
"""Metavars of values that are paths."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its spellings, what it means, and its value. ``values`` are the accepted ones, if they are known."""

    flags: tuple[str, ...]
    help: str
    takes_value: bool
    is_path: bool
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A command or action: ``path`` are the words that lead to it, such as ``records list``."""

    path: str
    children: Mapping[str, str]
    """Names and meanings of its actions."""
    options: tuple[Option, ...]
    values: tuple[str, ...] = field(default=())
    """What its positional arguments accept, if that is known."""
    takes_paths: bool = False


def add(add_parser: AddParser) -> None:
    completion = add_parser(
        description="Print a script that completes the commands, options and values of toolglot in a shell.",
        epilog=EXAMPLES,
    )
    completion.add_argument("shell", metavar="SHELL", choices=tuple(WRITERS), help=", ".join(WRITERS))
    completion.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from toolglot.cli.main import build_parser

    print("\n".join(WRITERS[arguments.shell](list(walk(build_parser())))))
    return OK


def walk(parser: argparse.ArgumentParser, path: str = "") -> Iterator[Node]:
    """The command, then its actions."""
    actions = list_actions(parser)
    options: list[Option] = []
    values: list[str] = []
    takes_paths, children = False, dict[str, str]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            children = {choice.dest: choice.help or "" for choice in action._get_subactions()}
        elif action.option_strings:
            options.append(_read_option(action))
        else:
            values += _values_of(action)
            takes_paths |= action.metavar in FILES
    yield Node(path, children, tuple(options), tuple(values), takes_paths)
    for name, action_parser in actions.items():
        yield from walk(action_parser, f"{path} {name}".strip())


def _read_option(action: argparse.Action) -> Option:
    takes_value = action.nargs != 0
    about = (action.help or "").replace("%%", "%").partition(" (default")[0]
    return Option(
        flags=tuple(action.option_strings),
        help=" ".join(about.split()),
        takes_value=takes_value,
        is_path=takes_value and action.metavar in FILES,
        values=tuple(_values_of(action)) if takes_value else (),
    )


def _values_of(action: argparse.Action) -> Iterable[str]:
    """The values that an argument accepts, as far as they are known."""
    if action.choices is not None:
        return map(str, action.choices)
    if action.metavar == "CLIENT":
        from toolglot.clients.agents import AGENTS

        return [agent.name for agent in AGENTS]
    if action.dest == "dialect":
        from toolglot.dialects.records import all_dialects

        return [dialect.name for dialect in all_dialects()]
    if isinstance(action.metavar, str) and "|" in action.metavar:
        return action.metavar.split("|")
    return ()


def _flags_with_value(node: Node) -> list[str]:
    return [flag for option in node.options if option.takes_value for flag in option.flags]


def _quote(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def _options_with_values(nodes: list[Node]) -> Iterator[tuple[str, Option, str]]:
    """Patterns of ``case`` for the options whose values are known or paths, the options, and whether they are paths."""
    for node in nodes:
        for option in node.options:
            if option.values or option.is_path:
                names = "|".join(shlex.quote(f"{node.path}:{flag}") for flag in option.flags)
                yield names, option, "yes" if option.is_path else "''"


# bash


def write_bash(nodes: list[Node]) -> Iterator[str]:
    yield f"""\
# Completion of {PROGRAM} for bash, version 4 or later
_{PROGRAM}_node() {{  # the candidates after a command: commands, options, options with a value, values
    case "$1" in"""
    for node in nodes:
        options = [flag for option in node.options for flag in option.flags]
        yield f"""\
        {shlex.quote(node.path)})
            children={_quote(node.children)} options={_quote(options)}
            valued={_quote(_flags_with_value(node))}
            values={_quote(node.values)} paths={"yes" if node.takes_paths else "''"} ;;"""
    yield f"""\
    esac
}}
_{PROGRAM}_values() {{  # the values of an option
    case "$1:$2" in"""
    for names, option, paths in _options_with_values(nodes):
        yield f"        {names}) values={_quote(option.values)} paths={paths} ;;"
    yield f"""\
    esac
}}
_{PROGRAM}() {{
    local node='' children options valued values paths word at
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    _{PROGRAM}_node ''
    for ((at = 1; at < COMP_CWORD; at++)); do
        word="${{COMP_WORDS[at]}}"
        if [[ " $valued " == *" $word "* ]]; then
            ((at++))
        elif [[ $word != -* && " $children " == *" $word "* ]]; then
            node="${{node:+$node }}$word"
            _{PROGRAM}_node "$node"
        fi
    done
    COMPREPLY=()
    if [[ " $valued " == *" $previous "* ]]; then
        values='' paths=''
        _{PROGRAM}_values "$node" "$previous"
        COMPREPLY=($(compgen -W "$values" -- "$current"))
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
        return
    else
        COMPREPLY=($(compgen -W "$children $values" -- "$current"))
    fi
    if [[ -n $paths ]]; then
        compopt -o default 2>/dev/null
    fi
}}
complete -F _{PROGRAM} {PROGRAM}"""


# zsh


def write_zsh(nodes: list[Node]) -> Iterator[str]:
    yield f"""\
#compdef {PROGRAM}
# Completion of {PROGRAM} for zsh
_{PROGRAM}_node() {{
    children=() options=() valued=() values=() paths=''
    case "$1" in"""
    for node in nodes:
        options = [f"{_escape(flag)}:{option.help}" for option in node.options for flag in option.flags]
        yield f"""\
        {shlex.quote(node.path)})
            children=({_zsh_list(f"{name}:{about}" for name, about in node.children.items())})
            options=({_zsh_list(options)})
            valued=({_zsh_list(_flags_with_value(node))})
            values=({_zsh_list(map(_escape, node.values))}) paths={"yes" if node.takes_paths else "''"} ;;"""
    yield f"""\
    esac
}}
_{PROGRAM}_values() {{
    values=() paths=''
    case "$1:$2" in"""
    for names, option, paths in _options_with_values(nodes):
        yield f"        {names}) values=({_zsh_list(map(_escape, option.values))}) paths={paths} ;;"
    yield f"""\
    esac
}}
_{PROGRAM}() {{
    local node='' paths='' word
    local -a children options valued values
    local -i at
    _{PROGRAM}_node ''
    for ((at = 2; at < CURRENT; at++)); do
        word="${{words[at]}}"
        if (( ${{valued[(Ie)$word]}} )); then
            ((at++))
        elif [[ $word != -* && -n ${{(M)children:#$word:*}} ]]; then
            node="${{node:+$node }}$word"
            _{PROGRAM}_node "$node"
        fi
    done
    if (( ${{valued[(Ie)${{words[CURRENT-1]}}]}} )); then
        _{PROGRAM}_values "$node" "${{words[CURRENT-1]}}"
        (( $#values )) && _describe 'value' values
    elif [[ ${{words[CURRENT]}} == -* ]]; then
        _describe -o 'option' options
        return
    else
        (( $#children )) && _describe 'command' children
        (( $#values )) && _describe 'value' values
    fi
    [[ -n $paths ]] && _files
}}
if [[ $funcstack[1] == _{PROGRAM} ]]; then
    _{PROGRAM} "$@"
else
    compdef _{PROGRAM} {PROGRAM}
fi"""


def _escape(word: str) -> str:
    return word.replace(":", "\\:")


def _zsh_list(words: Iterable[str]) -> str:
    return " ".join(map(shlex.quote, words))


# fish


def write_fish(nodes: list[Node]) -> Iterator[str]:
    yield f"""\
# Completion of {PROGRAM} for fish
function __{PROGRAM}_node
    set -l node ''
    set -l words (commandline -opc)
    set -e words[1]
    set -l skip 0
    for word in $words
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$node:$word\""""
    for node in nodes:
        if valued := _flags_with_value(node):
            yield f"            case {' '.join(_fish_quote(f'{node.path}:{flag}') for flag in valued)}"
            yield "                set skip 1"
        for name in node.children:
            path = f"{node.path} {name}".strip()
            yield f"            case {_fish_quote(f'{node.path}:{name}')}"
            yield f"                set node {_fish_quote(path)}"
    yield f"""\
        end
    end
    test "$node" = "$argv[1]"
end
complete -c {PROGRAM} -f"""
    for node in nodes:
        condition = _fish_quote(f"__{PROGRAM}_node {_fish_quote(node.path)}")
        start = f"complete -c {PROGRAM} -n {condition}"
        for name, about in node.children.items():
            yield f"{start} -a {_fish_quote(name)} -d {_fish_quote(about)}"
        if node.values:
            yield f"{start} -a {_fish_quote(' '.join(node.values))}"
        if node.takes_paths:
            yield f"{start} -F"
        for option in node.options:
            yield f"{start} {' '.join(_fish_option(option))}"


def _fish_option(option: Option) -> Iterator[str]:
    for flag in option.flags:
        yield f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
    if option.is_path:
        yield "-r -F"
    elif option.takes_value:
        yield f"-x -a {_fish_quote(' '.join(option.values))}" if option.values else "-x"
    yield f"-d {_fish_quote(option.help)}"


def _fish_quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


WRITERS: Final = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
