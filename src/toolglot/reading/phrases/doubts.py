"""Phrases and signs before a call that is more likely shown than meant.

Those of other languages are in ``examples.py``. All are compared with text in lower case: to compile an expression
that ignores case takes twice as long.
"""

from __future__ import annotations

import re

from toolglot.reading.phrases.examples import DOUBT as OTHER_DOUBT

_SHOWN = (
    r"(?:calls?|messages?|outputs?|logs?|files?|texts?|responses?|prompts?|docs?|documentation|manual|readme|lines?"
    r"|answers?|tests?|diffs?|patch|history|notes?|page|result|fixture|sample|transcript|payload|body|json|request|block"
    r"|comments?|issues?|templates?|emails?|inputs?|strings?|snippets?|tickets?|posts?|parsers?|clients?|servers?)"
)
WAITS = re.compile(
    r"(?<!\w)(?:if|once|when|after|until|unless|as soon as) you(?:['’]d| would| are| have)? ?"
    r"(?:agreed?|confirm(?:ed)?|approved?|want(?: me)?|like(?: me)?|prefer|ok|okay|fine|happy|say|wish)(?!\w)"
    r"|(?<!\w)(?:assuming|provided|supposing)(?: that)? you(?!\w)"
    r"|(?<!\w)(?:with|after|upon) your (?:approval|confirmation|permission|agreement)(?!\w)",
)
"""Phrases that wait for an agreement. All of them contain ``WAITS_FOR``."""
WAITS_FOR = "you"

_POINTED = r"(?: back| out)?(?: (?:this|that|the following|these|those|something like|exactly)(?: \w+){0,2})?\Z"
DOUBT = re.compile(
    r"(?<!\w)(?:someone|(?:may|might|can|could|will|to) (?:contain|include|hold|have)"
    r"|(?:contains?|includes?)(?: the line| a line)?\Z|template\Z)"
    r"|(?<!\w)(?:i|we)(?:['’]d| would| could| might)(?! like)(?!\w)"
    r"|(?<!\w)(?:you|one|someone|they)(?:['’]d|['’]ll| will| would| could| might| should| must| can)(?!\w)"
    r"|(?<!\w)(?:an?|the) \w+ (?:would|could|might)(?!\w)|(?<!\w)(?:this|that)(?: is|['’]s) (?:how|what)(?!\w)"
    r"|(?<!\w)(?:outputs?|behaviou?r|responses?|snippets?|calls|(?<!tool )(?<!function )call|rows|logs?|transcript"
    r"|syntax|formats?|prompts?|messages?|strings?|documentation|docs)\Z"
    r"|(?<!\w)(?:(?:do|did|will|would|should|must|can) not|don['’]t|didn['’]t|won['’]t|can['’]?t|cannot|never|against"
    r"|not (?:valid|correct|allowed|a good idea|safe|ok|okay))(?!\w)"
    r"|(?<!\w)(?:had|have|has|having) (?:\w+ )?(?:written|sent|tried|called|used|emitted|printed)(?!\w)"
    r"|(?<!\w)(?:wrote|sent|emitted|produced|printed|returned|generated|replied|answered|output|tried|logged|quoted?)"
    rf"{_POINTED}|(?<!\w){_SHOWN}(?: \w+)? (?:reads?|says?|said|contains?|contained|shows?|showed|looked|looks|had|has"
    rf"|quotes?|renders?|rendered|prints?|expects?|expected|gets?|got|receives?|received|parses?){_POINTED}"
    r"|(?<!\w)(?:feeds?|fed|passes|passed|gives|gave|sends|sent) (?:this|that|the following|these)(?!\w)"
    r"|(?<!\w)as (?:\w+ )?(?:documented|described|stated|specified|quoted|explained|defined) (?:in|by|on|under)(?!\w)"
    r"|(?<!\w)(?:injections?|injected|attack(?:er)?s?|malicious|illustration|not (?:an? )?(?:real|actual))(?!\w)"
    r"|(?<!\w)(?:previous(?:ly)?|already|earlier|last time|yesterday|originally|payload|grammar|recommends?)(?!\w)"
    r"|(?<!\w)(?:expected|generated|training) (?:\w+ ){0,2}(?:sequence|sample|string|token|text|value|result)s?(?!\w)"
    r"|(?<!\w)(?:copy|paste|send|put|enter|type|insert|add|use) (?:the \w+ below|this|the following|these)(?!\w)"
    r"|(?<!\w)(?:raw|sample|literal|verbatim) (?:output|text|response|message)s?(?!\w)"
    r"|(?<!\w)(?:old|new|legacy) (?:syntax|notation)(?!\w)"
    r"|(?<!\w)(?:snippet|excerpt|quote|extract|line|section|entry)s? (?:from|of|in) (?:the|an?|our|your|my)(?!\w)"
    r"|(?<!\w)how \w+ (?:does|do|did|writes?|calls?|formats?|spells?) (?:it|this|that|them|calls)(?!\w)"
    r"|(?<!\w)(?:with|shows?|match(?:es)?|prints?|emits?|sees?|writes?|yields?|into|from)\Z"
    r"|\A\W*given (?:the|this|an?)(?!\w)"
    r"|(?<!\w)(?:is|are|was|were|be) (?:\w+ )?(?:serialized|encoded|written|formatted|represented|rendered|logged)"
    r" (?:like|as|in|this)(?!\w)|(?<!\w)(?:is|are|was|were|be|such as|like|as|like this|like so|like these"
    r"|like the following|as follows|(?:is|are|was|were) (?:this|these|the following|as follows))\Z"
    r"|(?<!\w)(?:model|assistant|agent|llm|chatbot)s? (?:\w+ ){0,2}(?:writes?|emits?|outputs?|sends?|answers?|responds?"
    r"|repl(?:y|ies)|calls?|generates?|produces?|returns?|says?|sees?)(?!\w)"
    r"|(?<!\w)(?:below (?:is|are|you)|requested|asked for|this format|for example|for instance|instead of"
    r"|rather than)(?!\w)"
    rf"|{OTHER_DOUBT}",
)
"""Phrases of a sentence about a call that was, would be or must not be made, or that someone else makes."""

_REFUSABLE = "run|execute|call|use|write|send|make|invoke|issue|type|emit|try"
REFUSED = re.compile(
    rf"(?<!\w)(?:(?:do|did|must|should|shall|will|would) not|don['’]t|didn['’]t|mustn['’]t|shouldn['’]t|won['’]t|never)"
    rf"(?: \w+)? (?:{_REFUSABLE})(?: \w+){{0,3}}\Z"
    r"|(?<!\w)(?:führ|ruf|verwend|benutz|schreib|start)\w*(?: \w+){0,2} (?:nicht|nie|niemals)(?: \w+){0,2}\Z"
    r"|(?<!\w)(?:no|nunca|não|non|mai) (?:\w{1,2} )?"
    r"(?:ejecut|llam|us|escrib|hag|execut|cham|escrev|esegu|chiam|scriv)\w*(?: \w+){0,3}\Z"
    r"|(?<!\w)n(?:e |['’])(?:l['’])?(?:exécut|appel|lanc|utilis|écri)\w* (?:pas|jamais)(?: \w+){0,3}\Z"
    r"|(?<!\w)не (?:выполня|запуска|вызыва|использу|пиши)\w*(?: \w+){0,3}\Z"
    r"|(?:不要|切勿|请勿|不得|禁止)(?:执行|运行|调用|使用|写)[^，,。]{0,12}\Z"
    r"|(?:実行|呼び出|使用|使わ)[^、。]{0,8}(?:ないで|ては)[^、。]{0,8}\Z",
)
"""Sentences that say that the call behind them is not made, or must not be."""

NEXT = re.compile(
    r"(?<!\w)(?:now|next|jetzt|nun|nächste\w*|ahora|agora|maintenant|adesso|теперь|сейчас"
    r"|führe|ejecuto|executo|exécute|eseguo|выполняю|запускаю)(?!\w)|我重新|现在|接下来|下一步|\A\W*(?:先|首先|然后)|では、|これから"
    r"|(?<!\w)(?:retry|retrying|(?:try|trying)(?: it)? again)(?!\w)"
    r"|\A\W*(?!according|nothing|something|anything|everything|during|following|including)\w+ing(?!\w)",
)
"""Words of the next action, and a sentence that begins with it ("Running the tests:")."""
TELLS = re.compile(
    r"(?<!\w)(?:let me|let['’]s|i['’]ll|i will|i can|i am going to|i['’]m going to|we['’]ll)(?: \w+)?"
    r" (?:show|explain|illustrate|demonstrate|describe|quote|cite)(?!\w)",
)
"""Sentences whose next action is to show something."""
QUESTION = re.compile(r"[?？]")
ASKS = re.compile(
    r"(?<!\w)(?:should|shall|may|can|could|do|would) (?:i|we|you (?:want|like|agree|confirm|approve|mind|allow))(?!\w)"
    r"|(?<!\w)(?:want me to|(?:ok|okay|fine|alright|correct|right) (?:if|to|with you)|soll(?:en|te)? (?:ich|wir)"
    r"|darf ich|kann ich|möchte(?:st|n)|willst|einverstanden|debo|puedo|quieres|quiere|deseas|confirmas|devo|posso|quer"
    r"|dois-je|puis-je|voulez|veux-tu|d['’]accord|vuoi|procedo)(?!\w)"
    r"|(?<!\w)(?:выполнить|запустить|удалить|можно|продолжить|хотите|согласны)(?!\w)"
    r"|(?:要|需要|可以|应该|是否|能|让)我?(?:执行|运行|删除|调用|继续)?.{0,12}吗|是否|好吗|可以吗|ましょうか|よろしい|いいです"
    r"|(?:할까요|될까요|될지|괜찮)"
    r"|(?<!\w)(?:this|these|dies(?:e[mnrs]?)?|est[eoa]s?|ist[oa]|ceci|cela|quest[oaie]|эт[ои]\w?)(?!\w)|这|これ|この",
)
"""Questions that ask for permission, or point at what follows."""
POINTS = re.compile(r"[:：]")
"""The sign of a sentence that points at what follows."""
LABEL = re.compile(
    r"\A\W*(?:(?:unit|regression|parser|failing) tests?|(?:test )?(?:case|input|data|usage|reference)s?|[qa]|before"
    r"|after|bad|good|wrong|correct"
    r"|incorrect|invalid|valid|input|output|expected|actual|assistant|user|human|model|bot|ai|transcript)(?: #?\d+)?\Z",
)
"""Labels of cases, of their parts and of the lines of a conversation."""
REFERS = re.compile(r"(?<!\w)(?:like (?:the following|this|these|so)|as follows|(?:shown|given|quoted|seen) below)\Z")
"""Words at the end of a sentence that point at what follows without such a sign."""
BRACKET = "("
QUOTES = frozenset('"“„«「『【‘')
"""A bracket, and quotation marks, right before a call."""
INDENTED = re.compile(r"\n[ \t]*\n(?: {4}|\t)[ \t]*\Z")
"""Indented code behind a blank line."""
LINE_PREFIX = re.compile(
    r"[ \t]*(?:[+-]|//|--|;+|#+[ \t]|\*)[ \t]*(?<![-*] )\Z"
    r"|[ \t]*\|"
    r"|[ \t]*\d+(?:[ \t]*[|→│:]|\t)[ \t]*\Z"
    r"|\W{0,2}\d{2,4}[-/.:]\d\d[-/.:]\d\d"
    r"|[\w./-]+\.\w{1,8}:\d+(?::\d+)?:"
)
"""The prefix of a line of a diff, a comment, a table, a listing, a log or a search result; for the last line only."""
STRING = re.compile(r'"""|\'\'\'')
UNFINISHED = re.compile(r"[\w,] \Z")
"""A sentence that is not over; for the last two characters."""
ELEMENT = re.compile(r"<([A-Za-z][\w.-]*)(?:\s[^<>]{0,200})?>\s*\Z")
OWN = re.compile(
    r"tool|call|func|act|invoke|use|exec|command|step|answer|respon|assist|message|think|reason|plan|output|final|xml",
)
"""Parts of the names of elements that models put around calls that they mean."""
