"""The record that holds the phrases of one language; ``narrated_stops`` explains how they are used."""

from __future__ import annotations

from msgspec import Struct

TECHNICAL = (
    r"□|apis?|urls?|json|yaml|toml|xml|csv|sql|html|css|http|git|github|docker\w*|readme|logs?|commits?|branch(?:es)?"
    r"|tests?|scripts?|servers?|tokens?|endpoints?|schemas?|builds?|imports?|backups?|cache|cli|npm|pip|python|node"
    r"|images?|registry|buckets?|pods?|tickets?|screenshots?|ind(?:ex|ices|exes)|workers?|deployments?|clusters?"
    r"|queues?"
    r"|cron\w*|daemons?|firewall|dns|proxy|plugins?|widgets?|dashboards?|releases?|tags?|diffs?|merges?|hash(?:es)?"
    r"|checksums?|benchmarks?|dumps?|snapshots?|templates?|workflows?|pipelines?|jobs?|webhooks?|ssh|sdk|vms?|pdfs?"
    r"|excel|crm|kubernetes|helm|terraform|jpe?g|png|heic|linter|parser|changelog|upstream|headers?|stash|main"
    r"|pull requests?|prs?|e-?mails?|software|frontend|backend|backups?|bugs?|patch(?:es)?|repos?|stack\s?traces?"
)
"""Things that tools work on, in words that all languages borrow."""


class Phrases(Struct, frozen=True, kw_only=True):
    """Regular expressions of one language, in lower case and with straight apostrophes. Verbs are verbs of acting: what
    a model does with a tool. Verbs of explaining, waiting, offering or remembering stay out."""

    leads: str
    """Words before an announcement that do not change it ("now, "), with their separator. Empty in languages in which
    an announcement may begin anywhere in a sentence."""
    joins: str
    """Words that begin a clause inside a sentence ("so")."""
    announcing: str
    """An opening in the first person and a verb, from the beginning of a clause ("I'll now read")."""
    before: str
    """What refuses an announcement behind it: conditions, requests to the user."""
    behind: str
    """What refuses an announcement before it: later times, conditions, explanations."""
    verb_is_last: bool = False
    """Whether the announcing verb ends the sentence, so that ``behind`` applies to all of it."""
    addressing: str
    """What refuses an announcement in the next sentence: a request or a question to the user."""
    waiting: str
    """A whole last sentence that asks for patience or gives the purpose; the sentence before it counts."""
    asking: str
    """The beginning of a clause in which a user asks for something to be done."""
    declining: str
    """What makes a sentence of a user no request for action: explanations, plans, opinions."""
    questioning: str = "(?!)"
    """Question words. A verb before them asks to find something out ("check why"), what follows them asks nothing."""
    polite: str
    """What makes a question of a user a request ("can you")."""
    forbidding: str
    """What makes a whole message of a user no request for action ("don't change anything")."""
    agreeing: str
    """Words that agree to a proposal of the model."""
