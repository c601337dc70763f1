"""Phrases of narrated stops and requests: English."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_VERB = (
    r"(?:re-?)?(?:check|ask (?:the|our|□)|broaden|narrow|expand|refine|widen|limit the|bring up|pull up|spin up"
    r"|tear down"
    r"|boot|power|arm|record|capture|screenshot|take a screenshot|transcribe|translate|aggregate|join|dedupe"
    r"|deduplicate|normali[sz]e|saniti[sz]e|encrypt|decrypt|authenticate|provision|mount|unmount|tag|label"
    r"|categori[sz]e|classify|flag|mute|snooze|forward the|reply to|invite|post the|post a"
    r"|comment out|uncomment|drop the|truncate|index|seed|mock|stub|instrument|wrap|inline|hoist|extract|strip|trim"
    r"|pad|resize|crop|rotate|zip|compress|archive|sync|synchroni[sz]e|clone|fork|check out|cherry-pick|squash|tail"
    r"|cat|touch|curl|hit|request|crawl|scrape|iterate|loop|recalculate|recompute|rerun|re-run|retry|redo|undo"
    r"|experiment|simulate|sketch the|design the|prepare|finali[sz]e|complete the|finish the|redeploy|rebuild"
    r"|reinstall|relaunch|reopen|reread|research|study|survey|sample|peruse|skim|view|watch the|observe|consult"
    r"|assess|evaluate|identify|isolate|bisect|narrow down|rule out|double-? ?check|cross-?check|understand|collect"
    r"|gather|group|walk through the|step through"
    r"|go through (?:the|them|each|all)|track down|hunt down|bump|tweak|tidy|migrate|optimi[sz]e|simplify|split"
    r"|swap|attach|print|dump|log (?:in|into)|sign in|reconfigure|initiali[sz]e|scaffold|populate|fill (?:in|out)"
    r"|submit|publish|archive|assign|resolve|address the|handle (?:the|this|that) |tackle|peek|press|back up"
    r"|restore|unpack|unzip|decode|render|plot|benchmark|profile|raise|lower|increase|decrease|verify|examine"
    r"|inspect|review|read|open|search|scan|grep|find|locate|query|fetch|retrieve"
    r"|download|upload"
    r"|pull|push|grab|run|execute|test|build|compile|deploy|start(?! (?:by|with|off|from|on|at|in)\b)|restart"
    r"|launch|stop the|kill|install|uninstall"
    r"|upgrade|update|modify"
    r"|edit|change|fix|correct|repair|patch|adjust|refactor|rename|replace|rewrite|remove|delete|clear|clean up"
    r"|clean|create|add|append"
    r"|insert|write (?:the|a|an|this|these|some|unit|it|tests?|□)|generate|implement|apply|set(?: up| the| a| an"
    r"| your)"
    r"|configure|enable|disable"
    r"|switch|turn|toggle|dim|lock|unlock|play (?:the|your|some|a|it)|pause (?:the|your|it)|send the|send a|send an"
    r"|send it|send this|save|store|copy|move"
    r"|merge|commit|stage"
    r"|rebase|revert|roll back|reset|connect|navigate|browse|click|scroll|visit|investigate|explore|analy[sz]e"
    r"|debug|trace|diagnose"
    r"|compare|count|calculate|compute|measure|parse|extract|filter|convert|format|schedule|book|cancel the|order"
    r"|look (?:at|into|up|in|for"
    r"|through|around|inside|over|closer|more)|look it up|look that up|take a (?:\w+ ){0,2}look"
    r"|have a (?:\w+ ){0,2}look|dig (?:into|deeper|in)"
    r"|figure out|find out|try (?:a|an|the|that|this|again|another|it|with|using|running|to (?:\w+ ){1,2}(?:the|it"
    r"|this))|proceed (?:with|to)"
    r"|see (?:what|if|whether|how|where|which|why|the|who)|get (?:the|a|all|more|some|started|your|its|that|this|□)"
    r"|list (?:the|all|files|every|its|your|out the)"
    r"|make (?:the|a|an|this|these|that|those|some) (?:\w+ ){0,3}(?:change|edit|update|fix|adjustment|request|call"
    r"|file|directory|folder|correction|modification)s?"
    r"|use (?:the|a|an|my|□)(?=.*(?:tool|function|search|command|script|api|terminal|shell|browser|endpoint|query|□"
    r"| to ))|call (?:the|□)|invoke|continue (?:with|by)|mark (?:the|this|that|it)"
    r"|do (?:that|this|it|so) (?:now|right away|right now|first|immediately)"
    r"|map out the|confirm (?:that|this|the|whether)|work on|pinpoint|ping (?:the|it|□)|probe|validate|reproduce"
    r"|reload|refresh"
    r"|import|export|format|lint|wire|hook|draft)"
)
_DOING = (
    r"(?:re-?)?(?:checking|verifying|examining|inspecting|reviewing|reading|opening|searching|scanning|querying"
    r"|fetching|retrieving"
    r"|downloading|uploading|pulling|pushing|running|executing|testing|building|compiling|deploying|starting"
    r"|restarting|launching"
    r"|installing|upgrading|updating|modifying|editing|changing|fixing|correcting|patching|renaming|replacing"
    r"|rewriting|removing"
    r"|deleting|clearing|creating|adding|writing|generating|implementing|applying|setting|configuring|turning"
    r"|switching|sending|saving"
    r"|copying|moving|merging|committing|reverting|connecting|navigating|browsing|investigating|exploring"
    r"|analy[sz]ing|debugging"
    r"|comparing|counting|calculating|parsing|extracting|converting|looking|listing|getting|digging|scheduling"
    r"|booking|trying|loading)"
)
_ADVERB = (
    r"(?:now|first|next|then|also|just|quickly|simply|actually|immediately|briefly|carefully|start (?:off )?by"
    r"|begin by|go ahead and|try to|try"
    r"|proceed to|go and|move on to|continue by|get started by|need to|be|start|begin|have to|want to"
    r"|run through and|help you|re|use that to)"
)
PHRASES = Phrases(
    leads=(
        r"(?:now|next|first|then|also|finally|lastly|here|okay|ok|alright|right|so|great|good|perfect|meanwhile"
        r"|instead|again|and|but"
        r"|sure|hmm|well|second|after that|before that|with that|for that|for this|to start|to begin)(?:,? )"
    ),
    joins=r"so|so that|and|but|then|therefore|thus|hence|step \d+|step",
    announcing=(
        r"(?:(?:i'll|i will|i'm going to|i am going to|i'm now going to|i am now going to|i'm gonna|i'm about to"
        r"|let me|lemme|let's|let us|allow me to|we'll now|we will now|we'll first)"
        rf" (?:{_ADVERB} ){{0,3}}(?:{_VERB}|{_DOING})(?!\w)"
        r"|(?:i'll|i will|let me|let's|i'm going to) (?:now |first |then )?(?:start|begin|proceed|continue)"
        r" (?:with|on|from) (?:the|this|that|a|an|your|□)"
        rf"|(?:i need to|i have to|i must|i want to|i'd like to) (?:now |first |also |still ){{0,2}}(?!see |get "
        rf"|know |have ){_VERB}(?!\w)(?!.*\byou)"
        rf"|(?:i'm|i am) (?:now |just |currently |right now )?{_DOING}\b(?=.*(?:\bnow\b|\bfirst\b|\bright away\b"
        rf"|(?:\.\.\.|…|:)$))"
        rf"|(?:now |currently )?{_DOING}\b(?! (?:is|are|was|were|will|can|would|should|has"
        rf"|this is))(?=(?: [^ ,]+){{0,6}} (?:now|right away)(?:\.\.\.)?$|(?: [^ ,]+){{1,6}}\.\.\.$)"
        rf"|now {_DOING}\b)"
    ),
    before=(
        r"\b(?:if|once|when|whenever|unless|until|as soon as|should you|in case|provided|assuming|suppose|supposing"
        r"|imagine|after (?:you|your|the|a|we)|before (?:you|your)|with your|with you"
        r"|please(?! wait| hold| stand)|you(?:'ll| can| could| may| might| should| would| need| want|'d)"
        r"|let me know|would|could|says?|wrote|writes|prints?|printed"
        r"|means|meaning|otherwise|in short|to recap|to summari[sz]e|to sum up|example|from now on|going forward"
        r"|in future|in the future|tomorrow|later|depending|either|option)\b"
        r"|^\W*(?:(?:just|simply|then|also|and) )?(?:send|give|tell|provide|share|upload|paste|confirm|say|ask|type"
        r"|reply|answer|run|check|try|open|post|drop|point"
        r"|attach|choose|pick|select|approve|grant|feel|make|install|set|add|enable|connect|copy|restart|go|click"
        r"|use|describe|name|call|leave|wait|show|log|put|get|take|enter)\b"
    ),
    behind=(
        r"\b(?:add that|then$|(?:see|check) how (?:it|this|that|things) \w+$|see what (?:i|we) can do"
        r"|every (?:morning|evening|monday)|often|usually|normally|typically|about (?:yourself|you)|correct myself"
        r"|your mind|later|tomorrow|tonight|next (?:time|week|month|monday|session)|in (?:the )?future|from now on"
        r"|going forward|always|every (?:time|day|night|week|month|hour|commit|run|change)"
        r"|each time|whenever|soon|eventually|in a (?:future|later)|another (?:time|day)|this (?:afternoon|evening"
        r"|week)|(?:on|by|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
        r"|back with you|back (?:to|in) you|check (?:back|in)|get back (?:to|with)|an example|a (?:simple |small "
        r"|quick )?example|examples|scenario|analogy|basics|fundamentals|finally|lastly|at the end"
        r"|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|your (?:question|point|request)|what (?:we|you|i) know"
        r"|(?:once|unless|as soon as|until|after) (?:you|your|we|the|it|that|i have|i've|i get|approved?)"
        r"|when(?:ever)? (?:you|your|needed|necessary|required|it's|the)"
        r"|(?<!check )(?<!see )(?<!verify )(?<!determine )(?<!confirm )(?<!out )if|if (?:needed|necessary"
        r"|you (?:want|like|wish|need|agree|prefer))"
        r"|with your (?:permission|approval|consent|confirmation|ok)|on your behalf|subject to|per your (?:approval"
        r"|confirmation)|upon (?:your|approval|confirmation)|let me know|would have|as needed|where needed"
        r"|when needed)\b"
    ),
    addressing=(
        r"\b(?:(?:do|may|can) i|any preference|your (?:permission|approval|choice|preference)|please(?! wait| hold"
        r"| stand| bear)|let me know|tell me|send me|give me|shall i|should i"
        r"|do you (?:want|have|agree|prefer)|would you|could you|can you|is (?:that|this) ok|sounds? good|if you)\b"
        r"|^\W*(?:send|share|provide|paste|upload|confirm)\b"
    ),
    waiting=(
        r"(?:(?:just )?(?:one|a|give me a) (?:moment|second|sec|minute|bit)(?: please)?|(?:please )?(?:hold on"
        r"|hang on|stand by|wait|bear with me)(?: a (?:moment|second|sec|minute))?|here (?:goes|we go)|this (?:may"
        r"|might|will|could|should)(?: only| just)? take (?:a )?(?:\w+ ){0,2}\w+|(?:this|that) (?:will|should|would"
        r"|way|lets?|helps?)\b.+)"
    ),
    asking=(
        r"(?:(?:please|kindly|now|then|next|also|first|and|ok|okay|great|thanks|good|yes|sure|hey|hi|hello|so|but"
        r"|just|instead|finally|perfect)\b,? ){0,4}"
        rf"(?:(?:can|could|would|will) you (?:please |also |now |then |quickly |just ){{0,2}}|(?:i want|i need"
        rf"|i'd like|i would like) you to |you (?:should|must|need to|have to) |let's |go and |help me (?:to )?"
        rf"|i need to |we need to |i want to |i'd like to |your task is to )?"
        rf"(?:{_VERB}(?!\w)|write|send|set|make|get|give it|put|do (?:it|that|this|so)|go ahead|go on|continue"
        rf"|proceed|keep going|carry on|try|look|see|book|remind me|turn|stop|order|call|migrate|port|bump|wrap"
        rf"|sort|organi[sz]e|clone|init|initiali[sz]e|scaffold|optimi[sz]e|improve|speed up|split|extend|integrate"
        rf"|resolve|solve|publish|release|backup|back up|archive|zip|unzip|translate the file|finish|complete"
        rf"|handle|take care)\b"
        r"(?! (?:me (?:what|how|why|an? (?:idea|overview|explanation|summary|hint))))"
    ),
    declining=(
        r"\b(?:explain|describe|summari[sz]e|tell me|how (?:do|would|can|could|should) (?:i|you|we)|what (?:would"
        r"|should|is|are|does)|why (?:is|does|do|did|are)|do(?:n't| not) (?:change|edit|run|do|touch|modify|execute"
        r"|write|make|call|start|implement)"
        r"|(?:make|write|create|give|draft|propose|outline|sketch|draw up|come up with|show|suggest)(?: me"
        r"| us)? (?:a |an |the |your |me a |up a )?(?:\w+ ){0,2}(?:plan|proposal|outline|roadmap|strategy|overview"
        r"|explanation|summary|idea|opinion|poem|story|joke|haiku|essay)s?"
        r"|without (?:changing|running|editing|touching|executing)|no (?:changes|code|tools)|only (?:explain|plan"
        r"|think|answer|describe)|just (?:explain|answer|plan|tell|curious|wondering)|hypothetically|in theory"
        r"|your opinion|what do you think|plan (?:only|first|how)|before (?:you do|doing|making) any(?:thing"
        r"| changes?))\b"
    ),
    polite=r"\b(?:can|could|would|will) you\b",
    forbidding=(
        r"\bdo(?:n't| not) (?:change|edit|run|do|touch|modify|execute|write|make|call|start|implement)\b"
        r"|\bwithout (?:changing|running|editing|touching|executing)\b"
    ),
    agreeing=r"yes|yep|yeah|sure|ok|okay|please",
)
