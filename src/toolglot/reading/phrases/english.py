"""Phrases of narrated stops and requests: English."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_VERB = (
    r"(?:re-?)?(?:check|load|bring the|ask (?:the|our|□)|broaden|narrow|expand|refine|widen|limit the|bring up"
    r"|pull up|spin up|tear down|boot|power|arm|record|capture|screenshot|take a screenshot|transcribe|translate"
    r"|aggregate|join|dedupe|deduplicate|normali[sz]e|saniti[sz]e|encrypt|decrypt|authenticate|provision|mount"
    r"|unmount|tag|label|categori[sz]e|classify|flag|mute|snooze|forward the|reply to|invite|post the|post a"
    r"|comment out|uncomment|drop (?:the|those|these)|truncate|index|seed|mock|stub|instrument|wrap|inline|hoist"
    r"|extract|strip|trim"
    r"|pad|resize|crop|rotate|zip|compress|archive|sync|synchroni[sz]e|clone|fork|check out|cherry-pick|squash|tail"
    r"|cat|touch|curl|hit|request|crawl|scrape|iterate|loop|recalculate|recompute|rerun|re-run|retry|redo|undo"
    r"|experiment|simulate|sketch the|design the|prepare|finali[sz]e|complete the|finish the|redeploy|rebuild"
    r"|reinstall|relaunch|reopen|reread|research|study|survey|sample|peruse|skim|view|watch the|observe|consult"
    r"|assess|evaluate|identify|isolate|bisect|narrow down|rule out|double-? ?check|cross-?check|understand|collect"
    r"|gather|group|walk through the|step through|go through (?:the|them|each|all)|track down|hunt down|bump|tweak"
    r"|tidy|migrate|optimi[sz]e|simplify|split|swap|attach|print|dump|log (?:in|into)|sign in|reconfigure"
    r"|initiali[sz]e|scaffold|populate|fill (?:in|out)|submit|publish|archive|assign|resolve|address the"
    r"|handle (?:the|this|that) |tackle|peek|press|back up|restore|unpack|unzip|decode|render|plot|benchmark"
    r"|profile|raise|lower|increase|decrease|verify|examine|inspect|review|read|open|search|scan|grep|find|locate"
    r"|query|fetch|retrieve|download|upload|pull|push|grab|run|execute|test|build|compile|deploy|start(?! (?:by"
    r"|with|off|from|on|at|in)\b)|restart|launch|stop the|kill|install|uninstall|upgrade|update|modify|edit|change"
    r"|fix|correct|repair|patch|adjust|refactor|rename|replace|rewrite|remove|delete|clear|clean up|clean|create"
    r"|add|append|insert|write (?:the|a|an|this|these|some|unit|it|tests?|□)|generate|implement|apply|set(?: up"
    r"| the| a| an| your)|configure|enable|disable|switch|turn|toggle|dim|lock|unlock|play (?:the|your|some|a|it)"
    r"|pause (?:the|your|it)|send the|send a|send an|send it|send this|save|store|copy|move|merge|commit|stage"
    r"|rebase|revert|roll back|reset|connect|navigate|browse|click|scroll|visit|investigate|explore|analy[sz]e"
    r"|debug|trace|diagnose|compare|count|calculate|compute|measure|parse|extract|filter|convert|format|schedule"
    r"|book|cancel the|order|look (?:at|into|up|in|for|through|around|inside|over|closer|more)|look it up"
    r"|look that up|take a (?:\w+ ){0,2}look|have a (?:\w+ ){0,2}look|dig (?:into|deeper|in)|figure out|find out"
    r"|try (?:a|an|the|that|this|again|another|it|with|using|running|to (?:\w+ ){1,2}(?:the|it|this))"
    r"|proceed (?:with|to)|see (?:what|if|whether|how|where|which|why|the|who)|get (?:the|a|all|more|some|started"
    r"|your|its|that|this|□)|list (?:the|all|files|every|its|your|out the)|make (?:the|a|an|this|these|that|those"
    r"|some) (?:\w+ ){0,3}(?:change|edit|update|fix|adjustment|request|call|file|directory|folder|correction"
    r"|modification)s?|use (?:the|a|an|my|□)(?=.*(?:tool|function|search|command|script|api|terminal|shell|browser"
    r"|endpoint|query|□| to ))|call (?:the|□)|invoke|continue (?:with|by)|mark (?:the|this|that|it)|do (?:that|this"
    r"|it|so) (?:now|right away|right now|first|immediately)|map out the|confirm (?:that|this|the|whether)|work on"
    r"|pinpoint|ping (?:the|it|□)|probe|validate|reproduce|reload|refresh|import|export|format|lint|wire|hook"
    r"|draft)"
)
_DOING = (
    r"(?:re-?)?(?:checking|verifying|examining|inspecting|reviewing|reading|opening|searching|scanning|querying"
    r"|fetching|retrieving|downloading|uploading|pulling|pushing|running|executing|testing|building|compiling"
    r"|deploying|starting|restarting|launching|installing|upgrading|updating|modifying|editing|changing|fixing"
    r"|correcting|patching|renaming|replacing|rewriting|removing|deleting|clearing|creating|adding|writing"
    r"|generating|implementing|applying|setting|configuring|turning|switching|sending|saving|copying|moving|merging"
    r"|committing|reverting|connecting|navigating|browsing|investigating|exploring|analy[sz]ing|debugging|comparing"
    r"|counting|calculating|parsing|extracting|converting|looking|listing|getting|digging|scheduling|booking|trying"
    r"|loading)"
)
_ADVERB = (
    r"(?:now|first|next|then|also|just|quickly|simply|actually|immediately|briefly|carefully|start (?:off )?by"
    r"|begin by|go ahead and|try to|try|proceed to|go and|move on to|continue by|get started by|need to|be|start"
    r"|begin|have to|want to|run through and|help you|re|use that to)"
)
_SAYING = (
    r"(?:be|have|know|explain|describe|summari[sz]e|recap|outline|clarify|elaborate|highlight|emphasi[sz]e|stress"
    r"|note|mention|point|state|say|tell|show|share|give|offer|suggest|propose|recommend|introduce|present|discuss"
    r"|address|answer|reply|respond|repeat|restate|rephrase|reiterate|reassure|thank|apologi[sz]e|acknowledge|admit"
    r"|remind|warn|caution|preface|begin|start|end|conclude|close|finish|illustrate|demonstrate|walk|guide|take"
    r"|leave|keep|let|wait|pause|stop|hold|stay|stick|go|think|consider|assume|suppose|imagine|guess|believe|hope"
    r"|expect|need|want|like|prefer|appreciate|see|remember|forget|bear|follow|respect|treat|regard|count|trust"
    r"|accept|decline|refuse|reject|pass|skip|avoid|omit|ignore|call|name|refer|define|denote|cover|touch|dive"
    r"|unpack|break|spell|sum|wrap|paint|draw|contrast|quote|cite|paraphrase|interpret|help|assist|support|continue"
    r"|proceed|return|come|do|make|get|put|set|use|try|choose|pick|notify|inform|alert|ask|add|express|voice"
    r"|talk|teach|list|leave|provide|state|correct|list|justify|argue|defend|frame|simplify|work)"
)
"""Verbs of saying, thinking and being: no actions, also where any other verb is one."""
PHRASES = Phrases(
    leads=(
        r"(?:now|next|first|then|also|finally|lastly|here|okay|ok|alright|right|so|great|good|perfect|meanwhile"
        r"|instead|again|and|but|sure|hmm|well|second|after that|before that|with that|for that|for this|to start"
        r"|to begin)(?:,? )|to (?:[\w'□-]+ ){1,8}?(?=i'll |i will |i'm going |i need |let me )"
    ),
    joins=r"so|so that|and|but|then|therefore|thus|hence|step \d+|step",
    announcing=(
        rf"(?:doing (?:that|this|it|so) (?:right )?now(?!\w)|let me do (?:that|this|it|so)(?!\w)"
        rf"|(?:it's )?time to {_VERB}(?!\w)(?!.*\byou)|(?:proceeding|moving on) to (?:the|this|a|□|{_VERB})(?!\w)"
        rf"|(?:(?:one|a|just a|give me a) (?:moment|second|sec|minute)(?: please)?,? while i|give me a (?:moment"
        rf"|second"
        rf"|sec|minute) to) (?:{_ADVERB} ){{0,2}}{_VERB}(?!\w)"
        rf"|(?:hold on|hang on|stand by|bear with me|please wait|wait) while i {_VERB}(?!\w)|i now (?:need"
        rf"|have) to {_VERB}(?!\w)"
        rf"|(?:let me|allow me to) (?:(?:now|first|also|just|quickly"
        rf"|then) ){{0,2}}(?!{_SAYING}\b)[a-z-]{{3,}} (?:(?:up|down|in|out|into|on|over) )?(?:the|this|that|these"
        rf"|those|it|them|a|an|all|each|both|its|□)(?!\w)"
        rf"|(?:i'll|i will|i'm going to|i am going to) (?:now|next|first) (?!{_SAYING}\b)[a-z-]{{3,}} (?:(?:up|down"
        rf"|in|out|into|on|over) )?(?:the|this|that|these|those|it|them|a|an|all|each|both|its|□)(?!\w)"
        rf"|(?:now|next|first),? (?:i'll|i will|i'm going to) (?!{_SAYING}\b)[a-z-]{{3,}} (?:(?:up|down|in|out|into"
        rf"|on|over) )?(?:the|this|that|these|those|it|them|a|an|all|each|both|its|□)(?!\w)"
        r"|(?:i'll|i will|i'm going to|i am going to|i'm now going to|i am now going to|i'm gonna|i'm about to"
        r"|let me|lemme|let's|let us|allow me to|we'll now|we will now|we'll first)"
        rf" (?:{_ADVERB} ){{0,3}}(?:{_VERB}|{_DOING})(?!\w)"
        rf"|(?:i'll|i will|let me|i'm going to) (?!{_SAYING}\b)[a-z-]{{3,}} (?:it|that|this|them|those|these"
        rf"|the [^,.;:]{{1,40}}?)"
        rf" and (?:then )?{_VERB}(?!\w)"
        r"|(?:i'll|i will|let me|let's|i'm going to) (?:now |first |then )?(?:start|begin|proceed|continue) (?:with"
        r"|on|from) (?:the|this|that|a|an|your|□)"
        rf"|(?:i need to|i have to|i must|i want to|i'd like to) (?:now |first |also |still ){{0,2}}(?!see |get "
        rf"|know |have ){_VERB}(?!\w)(?!.*\byou)"
        rf"|(?:i'm|i am) (?:now |just |currently |right now )?{_DOING}\b(?=.*(?:\bnow\b|\bfirst\b|\bright away\b"
        rf"|(?:\.\.\.|…|:)$))"
        rf"|(?:now |currently )?{_DOING}\b(?! (?:is|are|was|were|will|can|would|should|has"
        rf"|this is))(?=(?: [^ ,]+){{0,6}} (?:now|right away)(?:\.\.\.)?$|(?: [^ ,]+){{1,6}}\.\.\.$)"
        rf"|now {_DOING}\b)"
    ),
    before=(
        r"^\W*(?:should|had|were) |\b(?:if|once|when|whenever|unless|until|as soon as|should you|in case|provided"
        r"|assuming|suppose|supposing"
        r"|imagine|after (?:you|your|the|a|we)|before (?:you|your)|with your|with you|please(?! wait| hold| stand)"
        r"|you(?:'ll| can| could| may| might| should| would| need| want|'d)|let me know|would|could|says?|wrote"
        r"|writes|prints?|printed|answers|replies|responds|something like|means|meaning|otherwise|in short|to recap"
        r"|to summari[sz]e|to sum up|example|from now on|going forward|in future|in the future|tomorrow|later"
        r"|depending|either|option)\b|^\W*(?:(?:just|simply|then|also|and) )?(?:send|give|tell|provide|share|upload"
        r"|paste|confirm|say|ask|type|reply|answer|run|check|try|open|post|drop|point|attach|choose|pick|select"
        r"|approve|grant|feel|make|install|set|add|enable|connect|copy|restart|go|click|use|describe|name|call"
        r"|leave|wait|show|log|put|get|take|enter)\b"
    ),
    behind=(
        r"\b(?:add that|then$|(?:see|check) how (?:it|this|that|things) \w+$|see what (?:i|we) can do"
        r"|every (?:morning|evening|monday)|often|usually|normally|typically|about (?:yourself|you)|correct myself"
        r"|your mind|later|tomorrow|tonight|next (?:time|week|month|monday|session)|in (?:the )?future|from now on"
        r"|going forward|always|every (?:time|day|night|week|month|hour|commit|run|change)|each time|whenever|soon"
        r"|eventually|in a (?:future|later)|another (?:time|day)|this (?:afternoon|evening|week)|(?:on|by"
        r"|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day|back with you|back (?:to|in) you|check (?:back|in)"
        r"|get back (?:to|with)|an example|a (?:simple |small |quick )?example|examples|scenario|analogy|basics"
        r"|fundamentals|finally|lastly|at the end|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|your (?:question"
        r"|point|request)|what (?:we|you|i) know"
        r"|(?:once|unless|as soon as|until|after) (?:you|your|we|the|it|that|i have|i've|i get|approved?)"
        r"|when(?:ever)? (?:you|your|needed|necessary|required|it's|the)"
        r"|(?<!check )(?<!see )(?<!verify )(?<!determine )(?<!confirm )(?<!out )if|if (?:needed|necessary"
        r"|you (?:want|like|need|agree|prefer))|with your (?:permission|approval|consent|confirmation|ok)"
        r"|on your behalf|subject to|per your (?:approval|confirmation)|upon (?:your|approval|confirmation)"
        r"|let me know|would have|as needed|where needed|when needed)\b"
    ),
    addressing=(
        r"\b(?:(?:do|may|can) i|any preference|your (?:permission|approval|choice|preference)|please(?! wait| hold"
        r"| stand| bear)|let me know|tell me|send me|give me|shall i|should i|do you (?:want|have|agree|prefer)"
        r"|would you|could you|can you|is (?:that|this) ok|sounds? good|if you)\b|^\W*(?:send|share|provide|paste"
        r"|upload|confirm)\b"
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
        rf"|i need to |we need to |i want to |i'd like to |your task is to )?(?!(?:compare|calculate|compute"
        rf"|translate|understand)\b|test$)(?:{_VERB}(?!\w)|write|send|set|make"
        rf"|get|give it|put|do (?:it|that|this|so)|go ahead|go on|continue|proceed|keep going|carry on|try|look|see"
        rf"|book|remind me|turn|stop|order|call|migrate|port|bump|wrap|sort|organi[sz]e|clone|init|initiali[sz]e"
        rf"|scaffold|optimi[sz]e|improve|speed up|split|extend|integrate|resolve|solve|publish|release|backup"
        rf"|back up|archive|zip|unzip|translate the file|finish|complete|handle|take care)\b"
        r"(?! (?:me (?:what|how|why|an? (?:idea|overview|explanation|summary|hint))))"
    ),
    declining=(
        r"\b(?:explain|describe|summari[sz]e|^tell me|(?:you|please) tell me|how (?:do|would|can|could|should) (?:i"
        r"|you|we)|what (?:would"
        r"|should|is|are|does)|why (?:is|does|do|did|are)|do(?:n't| not) (?:change|edit|run|do|touch|modify|execute"
        r"|write|make|call|start|implement)"
        r"|(?:make|write|create|give|draft|propose|outline|sketch|draw up|come up with|show|suggest)(?: me"
        r"| us)? (?:a |an |the |your |me a |up a )?(?:\w+ ){0,2}(?:plan|proposal|outline|roadmap|strategy|overview"
        r"|explanation|summary|idea|opinion|poem|story|joke|haiku|essay)s?|without (?:changing|running|editing"
        r"|touching|executing)|no (?:changes|code|tools)|only (?:explain|plan|think|answer|describe)"
        r"|just (?:explain|answer|plan|tell|curious|wondering)|hypothetically|in theory|your opinion"
        r"|what do you think|plan (?:only|first|how)|before (?:you do|doing|making) any(?:thing| changes?))\b"
    ),
    polite=r"\b(?:can|could|would|will) you\b",
    forbidding=(
        r"\bdo(?:n't| not) (?:change|edit|run|do|touch|modify|execute|write|make|call|start|implement)\b"
        r"|\bwithout (?:changing|running|editing|touching|executing)\b"
    ),
    agreeing=r"yes|yep|yeah|sure|ok|okay|please",
)
