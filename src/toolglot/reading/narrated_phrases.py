"""Phrases of narrated stops, one record per language.

``narrated_stops`` explains how they are used. All text is in lower case, with straight apostrophes. A record lists verbs of
acting only: what a model does with a tool. Verbs of explaining, waiting, offering or remembering stay out.
"""

from __future__ import annotations

from msgspec import Struct


class Phrases(Struct, frozen=True, kw_only=True):
    """Regular expressions of one language. The order of alternatives does not matter."""

    leads: str
    """Words before an opening that do not change it ("now", "first"); with their separator."""
    joins: str
    """Words that begin a clause inside a sentence ("so")."""
    announcing: str
    """An opening and a verb of acting, from the beginning of a clause."""
    before: str
    """What refuses an announcement behind it: conditions, requests to the user, other speakers."""
    behind: str
    """What refuses an announcement before it: later times, conditions, explanations."""
    waiting: str
    """A whole last sentence that only asks for patience; the sentence before it counts."""



EN_VERB = (
    r"(?:re-?)?(?:check|verify|examine|inspect|review|read|open|search|scan|grep|find|locate|query|fetch|retrieve"
    r"|download|upload"
    r"|pull|push|grab|run|execute|test|build|compile|deploy|start|restart|launch|stop the|kill|install|uninstall"
    r"|upgrade|update|modify"
    r"|edit|change|fix|correct|repair|patch|adjust|refactor|rename|replace|rewrite|remove|delete|clear|clean up|clean"
    r"|create|add|append"
    r"|insert|write (?:the|a|an|this|these|some|unit|it|tests?|□)|generate|implement|apply|set(?: up| the)|configure"
    r"|enable|disable"
    r"|switch|turn|toggle|dim|lock|unlock|play|pause|send the|send a|send an|send it|send this|save|store|copy|move"
    r"|merge|commit|stage"
    r"|rebase|revert|roll back|reset|connect|navigate|browse|click|scroll|visit|investigate|explore|analy[sz]e|debug"
    r"|trace|diagnose"
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
    r"|use (?:the|a|an|my|□)\b.{0,60}|call (?:the|□)|invoke|continue (?:with|by)|mark (?:the|this|that|it)|do (?:that"
    r"|this|it|so) (?:now|right away|right now|first|immediately)"
    r"|map out the|confirm (?:that|this|the|whether)|work on|pinpoint|ping|probe|validate|reproduce|reload|refresh"
    r"|monitor|import|export|format|lint|wire|hook|draft)"
)
_EN_DOING = (
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
_EN_ADVERB = (
    r"(?:now|first|next|then|also|just|quickly|simply|actually|immediately|briefly|carefully|start (?:off )?by"
    r"|begin by|go ahead and|try to|try"
    r"|proceed to|go and|move on to|continue by|continue to|get started by|need to|be|start|begin|have to|want to"
    r"|run through and|help you|re|use that to)"
)
ENGLISH = Phrases(
    leads=(
        r"(?:now|next|first|then|also|finally|lastly|here|okay|ok|alright|right|so|great|good|perfect|meanwhile"
        r"|instead|again|and|but"
    )
    r"|sure|hmm|well|second|after that|before that|with that|for that|for this|to start|to begin)(?:,? )",
    joins=r"so|so that|and|but|then|therefore|thus|hence|step \d+|step",
    announcing=(
        r"(?:(?:i'll|i will|i'm going to|i am going to|i'm now going to|i am now going to|i'm gonna|i'm about to"
        r"|let me|lemme|let's|let us|allow me to|we'll|we will|we're going to)"
        rf" (?:{_EN_ADVERB} ){{0,3}}(?:{EN_VERB}|{_EN_DOING})(?!\w)"
        rf"|(?:i'll|i will|let me|let's|i'm going to) (?:now |first |then )?(?:start|begin|proceed|continue"
        rf"|get started) (?:with|by|on|in|from|to)\b"
        rf"|(?:i need to|i have to|i must|i want to|i'd like to) (?:now |first |also |still ){{0,2}}(?!see |get "
        rf"|know |have ){EN_VERB}(?!\w)(?!.*\byou)"
        rf"|(?:i'm|i am) (?:now |just |currently |right now )?{_EN_DOING}\b(?=.*(?:\bnow\b|\bfirst\b|\bright away\b"
        rf"|(?:\.\.\.|…|:)$))"
        rf"|(?:now |currently )?{_EN_DOING}\b(?! (?:is|are|was|were|will|can|would|should|has"
        rf"|this is))(?=[^,]*(?:\bnow\b\W*$|\bright away\b\W*$|(?:\.\.\.|…)$))"
        rf"|now {_EN_DOING}\b)"
    ),
    before=(
        r"\b(?:if|once|when|whenever|unless|until|as soon as|should you|in case|provided|assuming|suppose|supposing"
        r"|imagine|after (?:you|your|the|a|we)|before you"
        r"|please(?! wait| hold| stand)|you(?:'ll| can| could| may| might| should| would| need| want|'d)|let me know"
        r"|would|could|says?|wrote|writes|prints?|printed"
        r"|means|meaning|otherwise|in short|to recap|to summari[sz]e|to sum up|example|from now on|going forward"
        r"|in future|in the future|tomorrow|later|depending|either|option)\b"
        r"|^\W*(?:(?:just|simply|then|also|and) )?(?:send|give|tell|provide|share|upload|paste|confirm|say|ask|type"
        r"|reply|answer|run|check|try|open|post|drop|point"
        r"|attach|choose|pick|select|approve|grant|feel|make|install|set|add|enable|connect|copy|restart|go|click|use"
        r"|describe|name|call|leave|wait|show|log|put|get|take|enter)\b"
    ),
    behind=(
        r"\b(?:later|tomorrow|tonight|next (?:time|week|month|monday|session)|in (?:the )?future|from now on"
        r"|going forward|always|every (?:time|day|night|week|month|hour|commit|run|change)"
        r"|each time|whenever|soon|eventually|in a (?:future|later)|another (?:time|day)|this (?:afternoon|evening"
        r"|week)|(?:on|by|until) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
        r"|back with you|back (?:to|in) you|check (?:back|in)|get back|an example|a (?:simple |small |quick )?example"
        r"|examples|scenario|analogy|basics|what (?:we|you|i) know"
        r"|(?:once|unless|as soon as|until|after) (?:you|your|we|the|it|that|i have|i've|i get|approved?)"
        r"|when(?:ever)? (?:you|your|needed|necessary|required|it's|the)"
        r"|(?<!check )(?<!see )(?<!verify )(?<!determine )(?<!confirm )(?<!out )if|if (?:needed|necessary|you (?:want"
        r"|like|wish|need|agree|prefer))"
        r"|with your (?:permission|approval|consent|confirmation|ok)|on your behalf|subject to|per your (?:approval"
        r"|confirmation)|upon (?:your|approval|confirmation)|let me know|would have|as needed|where needed"
        r"|when needed)\b"
    ),
    waiting=(
        r"(?:(?:just )?(?:one|a|give me a) (?:moment|second|sec|minute|bit)(?: please)?|(?:please )?(?:hold on"
        r"|hang on|stand by|wait|bear with me)(?: a (?:moment|second|sec|minute))?|here (?:goes|we go)|this (?:may"
        r"|might|will|could|should)(?: only| just)? take (?:a )?(?:\w+ ){0,2}\w+)"
    ),
)

_ZH_VERB = (
    r"(?:检查|查看|查一?下|查询|查找|查阅|查天气|查订单|再查|看看|看一下|看下|看一看|浏览|读取|阅读|读一?下|打开|搜索|搜一?下|检索|寻找|找一?下|定位|运行|执行|跑一?下|测试|试试|试一下|尝试"
    r"|重试|构建|编译|部署"
    r"|启动|重启|停止服务|安装|卸载|升级|更新|修改|编辑|更改|改一?下|修复|修正|纠正|调整|重构|重命名|替换|重写|删除|移除|清理|清除|创建|新建|添加|增加|插入|写入|编写|生成|实现|应用|设置|配置"
    r"|启用|禁用|关掉|关闭|打开"
    r"|调暗|播放|发送|保存|复制|移动|合并|提交|回退|连接|访问|点击|调查|排查|探索|分析|调试|比较|对比|统计|计算|解析|提取|过滤|转换|安排|预订|预定|列出|获取|抓取|下载|上传|拉取|推送|调用|使用"
    r"|验证|确认一?下|确认是否|了解|处理|完成这|换一种|换个|从|把|将|对)"
)
CHINESE = Phrases(
    leads=r"(?:好的?|首先|然后|接着|接下来|现在|那么|所以|因此|下一步|下面|最后|另外|同时|请稍等|稍等)[，, ]?",
    joins=r"所以|因此|那么|于是|接下来|现在|首先|然后|下面|下一步|但|并|但是",
    announcing=(
        r"(?:(?:让我们?|我们?来|我先|我们先|我将|我现在|我会|我这就|我马上|我立即|我立刻|我去|我要|我再|我继续|我接着|我需要先|我得先|我需要|我得|我帮[你您]|我为[你您]|我给[你您]|我正在"
        r"|我准备|我打算|我就|我开始|我可以先|请允许我|容我|我)"
        r"(?:现在|首先|先|再|来|去|就|马上|立即|立刻|继续|接着|直接|快速|仔细|重新|帮[你您]|为[你您]|需要|要|会|将|开始|一起|尝试|进一步|深入|同时|也|正在|这就|逐个){0,4}"
        rf"{_ZH_VERB}(?!了|过|完|到了|的是)"
        rf"|(?:接下来|现在|首先|下面|下一步|然后|接着|先)[，, ]?(?:就|来|去|先|再|开始|继续|需要|要|将|会){{1,3}}{_ZH_VERB}(?!了|过|完)"
        r"|(?:接下来|现在|首先|下面|下一步)[，, ]?(?:检查|查看|查询|看看|看一下|读取|运行|执行|测试|搜索|打开|修改|更新|创建|修复|分析|删除|安装|验证|编写)(?!了|过"
        r"|完)(?=.*(?:一下|[:：…]|\.\.\.|看看)))"
    ),
    before=(
        r"如果|要是|假如|假设|若|一旦|等你|等您|等到|当[你您]|只要|除非|必要时|需要的话|需要时|[你您](?:确认|同意|批准|回复|提供|告诉|可以|应该|需要|的(?:确认|同意|批准|许可))|告诉我"
        r"|请(?!稍|允许|等)|发给我|给我|提供|换作|比如|例如|以后|今后|从现在起|将来|明天|之后[，,]?我再"
        r"|写[着了道]|说[：:“]"
    ),
    behind=(
        r"如果|如有|一旦|等你|等您|[你您](?:确认|同意|批准|回复|需要|愿意)(?:后|之后|的话|时)?|以后|今后|每次|将来|明天|下次|下周|稍后|晚些|例子|示例|解释|说明一下|进行说明|总结|概括"
        r"|介绍|回答|记住|留意|关注|等待|必要时|需要时|了[。，]?$|过了|已经|吗$|呢$"
    ),
    waiting=r"(?:请)?(?:您|你)?(?:稍等|稍候|等一?下|等一等)(?:一下|片刻|一会儿?)?",
)

ES_INFINITIVE = (
    r"(?:leer|revisar|verificar|comprobar|examinar|inspeccionar|ver|mirar|echar (?:un vistazo|una mirada)"
    r"|dar (?:un vistazo|una mirada)|buscar|abrir|consultar|ejecutar|correr|probar|lanzar|compilar|construir"
    r"|desplegar|iniciar|reiniciar|arrancar|instalar|desinstalar"
    r"|actualizar|modificar|editar|cambiar|corregir|arreglar|reparar|ajustar|refactorizar|renombrar|reemplazar"
    r"|reescribir|eliminar|borrar|quitar|limpiar|crear|agregar|añadir|insertar|escribir|generar|implementar|aplicar"
    r"|configurar|activar|desactivar"
    r"|apagar|encender|reproducir|enviar|mandar|guardar|copiar|mover|fusionar|revertir|conectar|navegar|visitar"
    r"|investigar|explorar|analizar|depurar|comparar|contar|calcular|extraer|filtrar|convertir|programar|agendar"
    r"|reservar|listar|obtener|descargar|subir"
    r"|intentar|usar|utilizar|localizar|encontrar|averiguar|proceder|comenzar (?:por|con|a|leyendo|revisando|listando"
    r"|analizando)|empezar (?:por|con|a)|validar|importar|exportar|hacer (?:eso|esto|el cambio|los cambios"
    r"|la consulta|una consulta|una búsqueda)|poner|cargar|traer|recuperar)"
)
_ES_PRESENT = (
    r"(?:leo|reviso|verifico|compruebo|examino|busco|abro|consulto|ejecuto|corro|pruebo|lanzo|compilo|inicio|reinicio"
    r"|instalo|actualizo|modifico|edito|cambio|corrijo|arreglo|ajusto|elimino|borro|creo (?:el|la|los|las|un|una|□)"
    r"|agrego|añado|escribo (?:el|la|los|las|un|una|□)|genero"
    r"|aplico|configuro|activo|desactivo|apago|enciendo|envío|guardo|copio|muevo|analizo|comparo|calculo|extraigo"
    r"|descargo|listo los|obtengo|procedo (?:a|con)|comienzo (?:por|con|a)|empiezo (?:por|con|a)|intento)"
)
_ES_ADVERB = (
    r"(?:ahora|primero|ya|también|directamente|rápidamente|entonces|a continuación|inmediatamente|luego|proceder a"
    r"|comenzar a|empezar a|intentar|tratar de|pasar a|volver a)"
)
SPANISH = Phrases(
    leads=(
        r"(?:ahora|primero|luego|entonces|a continuación|después|ok|vale|bien|bueno|claro|perfecto|entendido|y|pero"
        r"|siguiente paso|por último|finalmente|de acuerdo|ahora mismo|en primer lugar|para empezar|yo)(?:,? )"
    ),
    joins=r"así que|por lo que|por eso|por tanto|y|pero|entonces|luego",
    announcing=(
        rf"(?:(?:(?:lo|la|los|las|te|le) )?(?:voy"
        rf"|vamos) (?:{_ES_ADVERB} )?a (?:{_ES_ADVERB} ){{0,2}}{ES_INFINITIVE}(?:lo|la|los|las|le|te)?(?!\w)"
        rf"|(?:déjame|déjeme|dejame|permíteme|permítame|permiteme) (?:{_ES_ADVERB} ){{0,2}}{ES_INFINITIVE}(?:lo|la"
        rf"|los|las|le)?(?!\w)"
        rf"|(?:(?:lo|la|los|las|te|le) )?(?:{ES_INFINITIVE}é|haré (?:eso|esto|el|la|los|una)|pondré|obtendré"
        rf"|comenzaré (?:por|con|a)|empezaré (?:por|con|a)|procederé|usaré|utilizaré|echaré un vistazo)(?!\w)"
        r"|lo primero que (?:haré|voy a hacer)"
        rf"|(?:(?:lo|la|los|las|te|le) )?{_ES_PRESENT}(?!\w)"
        r"|(?:veamos|revisemos|verifiquemos|comprobemos|busquemos|abramos|ejecutemos|probemos|miremos|leamos"
        r"|examinemos|analicemos|comencemos|empecemos|consultemos|listemos|exploremos|actualicemos|corrijamos"
        r"|instalemos)(?!\w)"
        r"|estoy (?:leyendo|revisando|verificando|comprobando|buscando|abriendo|consultando|ejecutando|instalando"
        r"|actualizando|creando|analizando|descargando)\b(?=.*(?:\bahora\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\b(?:si|cuando|una vez|en cuanto|tan pronto|en caso|de ser necesario|si no|a menos|hasta|después de que"
        r"|tras (?:tu|su)|con (?:tu|su) permiso|dime|díme|dígame|envíame|envía|envíe|mándame|pásame|dame|deme|avísame"
        r"|confirma|confirme|comparte|indica|indícame|por favor|sube|pega|escribe|supongamos|supón|digamos|imagina"
        r"|puedes|podrías|deberías|debes|en el futuro|de ahora en adelante|a partir de ahora|mañana|dice|escribe"
        r"|escribió|sería|haría|por ejemplo)\b"
    ),
    behind=(
        r"\b(?:mañana|luego|más tarde|más adelante|en el futuro|siempre|cada (?:vez|commit|día|noche|semana)"
        r"|cuando (?:me|tú|usted|lo|quieras|confirmes|esté)|si (?:quieres|lo deseas|hace falta|es necesario|me"
        r"|prefieres|te)|en cuanto|una vez|un ejemplo|ejemplos|de ejemplo|explicar|resumir|aclarar|hasta que|tras tu"
        r"|próxima vez|después de que)\b"
    ),
    waiting=(
        r"(?:un (?:momento|segundo|instante)(?:,? por favor)?|(?:por favor,? )?espera(?: un momento)?"
        r"|dame un (?:momento|segundo))"
    ),
)

PT_INFINITIVE = (
    r"(?:ler|verificar|checar|conferir|examinar|inspecionar|ver|olhar|dar uma (?:\w+ )?olhada|buscar|procurar"
    r"|pesquisar|abrir|consultar|executar|rodar|testar|compilar|construir|implantar|iniciar|reiniciar|instalar"
    r"|desinstalar|atualizar|modificar|editar|alterar|mudar|corrigir|consertar"
    r"|arrumar|reparar|ajustar|refatorar|renomear|substituir|reescrever|remover|excluir|apagar|deletar|limpar|criar"
    r"|adicionar|inserir|escrever|gerar|implementar|aplicar|configurar|ativar|desativar|desligar|ligar|acender|tocar"
    r"|enviar|mandar|salvar|guardar|copiar|mover|mesclar|reverter"
    r"|conectar|navegar|acessar|investigar|explorar|analisar|depurar|comparar|contar|calcular|extrair|filtrar"
    r"|converter|agendar|marcar|reservar|listar|obter|baixar|descarregar|carregar|subir|tentar|usar|utilizar"
    r"|localizar|encontrar|descobrir|prosseguir|validar|importar|exportar|puxar|fazer (?:isso|a|o|uma|as|os|essa"
    r"|esse))"
)
_PT_PRESENT = (
    r"(?:leio|verifico|confiro|examino|busco|procuro|abro|consulto|executo|rodo|testo|instalo|atualizo|edito|altero"
    r"|mudo|corrijo|ajusto|removo|apago|excluo|crio|adiciono|gero|aplico|configuro|ligo|desligo|envio|salvo|analiso"
    r"|comparo|baixo|reinicio)"
)
_PT_CLITIC = r"(?:-(?:lo|la|los|las|o|a|os|as))?"
_PT_VERB = (
    rf"(?:{PT_INFINITIVE}(?!\w)|(?:criá|instalá|atualizá|verificá|corrigi|abri|lê|removê|apagá|executá|editá|testá"
    rf"|adicioná|analisá|ajustá|alterá|buscá|excluí|configurá|enviá|salvá)-l[oa]s?"
    r"|(?:começar|iniciar) (?:por|com|a|pelo|pela|lendo|listando|verificando|analisando|abrindo))"
)
_PT_ADVERB = (
    r"(?:agora|primeiro|já|também|diretamente|rapidamente|então|logo|te|lhe|imediatamente|em seguida|começar a|tentar"
    r"|proceder a|passar a|o|a|os|as)"
)
PORTUGUESE = Phrases(
    leads=(
        r"(?:agora|primeiro|depois|então|em seguida|a seguir|ok|certo|bem|bom|claro|perfeito|entendido|e|mas"
        r"|próximo passo|por fim|finalmente|eu|agora mesmo|em primeiro lugar|para começar)(?:,? )"
    ),
    joins=r"então|por isso|portanto|assim|e|mas|eu",
    announcing=(
        rf"(?:(?:vou|irei|vamos|estou indo) (?:{_PT_ADVERB} ){{0,3}}{_PT_VERB}{_PT_CLITIC}(?!\w)"
        rf"|(?:deixe-me|deixa-me|deixe eu|deixa eu|deixa-me|permita-me|me deixe"
        rf"|me deixa) (?:{_PT_ADVERB} ){{0,2}}{_PT_VERB}{_PT_CLITIC}(?!\w)"
        rf"|(?:{PT_INFINITIVE}ei|começarei (?:por|com|a|lendo|listando|pelo|pela)|farei (?:isso|a|o|uma)|usarei"
        rf"|obterei)(?!\w)"
        rf"|(?:agora|já|agora mesmo) (?:eu )?{_PT_PRESENT}(?!\w)|{_PT_PRESENT}(?!\w)(?= .*\b(?:agora|já)\b)"
        r"|(?:vejamos|verifiquemos|comecemos|analisemos|busquemos)(?!\w)"
        r"|estou (?:lendo|verificando|buscando|abrindo|consultando|executando|rodando|instalando|atualizando|criando"
        r"|analisando|baixando|procurando|pesquisando)\b(?=.*(?:\bagora\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\b(?:se|quando|assim que|uma vez|logo que|caso|se necessário|a menos|até que|depois que|após (?:a sua|sua"
        r"|o seu|seu)|com (?:a )?sua (?:permissão|aprovação)|diga|me diga|envie|me envie|mande|me mande|me passe"
        r"|confirme|compartilhe|informe|por favor|cole|suponha|suponhamos|digamos|imagine|você (?:pode|deve|deveria"
        r"|poderia)|no futuro|de agora em diante|a partir de agora|amanhã|diz|escreve|escreveu|por exemplo)\b"
    ),
    behind=(
        r"\b(?:amanhã|mais tarde|depois que|no futuro|sempre|cada (?:vez|commit|dia|noite|semana)|toda vez"
        r"|quando (?:você|quiser|me|estiver|for)|se (?:quiser|você|for|necessário|preferir|precisar)|assim que"
        r"|um exemplo|exemplos|explicar|resumir|esclarecer|até que|após a sua|próxima vez|caso)\b"
    ),
    waiting=(
        r"(?:(?:só )?um (?:momento|segundo|instante|minuto)(?:,? por favor)?|(?:por favor,? )?aguarde(?: um momento)?"
        r"|já volto)"
    ),
)

FR_INFINITIVE = (
    r"(?:lire|relire|vérifier|examiner|inspecter|voir|regarder|jeter un (?:\w+ )?(?:œil|oeil|coup d'œil|coup d'oeil)"
    r"|consulter|chercher|rechercher|trouver|localiser|ouvrir|interroger|exécuter|lancer|relancer|tester|compiler"
    r"|construire|déployer|démarrer|redémarrer|installer|désinstaller|réinstaller"
    r"|mettre (?:à jour|en place|en œuvre)|actualiser|modifier|éditer|changer|corriger|réparer|ajuster|adapter"
    r"|refactoriser|renommer|remplacer|réécrire|supprimer|effacer|retirer|nettoyer|créer|ajouter|insérer|écrire"
    r"|rédiger|générer|implémenter|appliquer|configurer|activer|désactiver|éteindre|allumer|envoyer"
    r"|enregistrer|sauvegarder|copier|déplacer|fusionner|annuler la|connecter|naviguer|explorer|enquêter|analyser"
    r"|déboguer|comparer|compter|calculer|extraire|filtrer|convertir|planifier|réserver|lister|obtenir|récupérer"
    r"|télécharger|essayer|réessayer|utiliser|procéder|valider|importer|exporter|faire (?:cela|ça|une|le|la|les)"
    r"|effectuer|parcourir|tenter|commencer (?:par|à|avec))"
)
FR_PRESENT = (
    r"(?:lis|relis|vérifie|examine|regarde|consulte|cherche|recherche|ouvre|exécute|lance|relance|teste|compile"
    r"|déploie|démarre|redémarre|installe|mets (?:à jour|en place)|modifie|change|corrige|répare|ajuste|adapte"
    r"|renomme|remplace|supprime|efface|nettoie|crée|ajoute|écris|rédige|génère|applique|configure"
    r"|active|désactive|éteins|allume|envoie|enregistre|copie|déplace|explore|analyse|compare|compte les|calcule"
    r"|extrais|récupère|télécharge|essaie|réessaie|utilise l'outil|procède|effectue|m'occupe (?:de|maintenant|tout)"
    r"|commence (?:par|à)|jette un)"
)
_FR_ADVERB = (
    r"(?:maintenant|d'abord|tout d'abord|donc|aussi|également|ensuite|alors|immédiatement|tout de suite|à présent"
    r"|rapidement|simplement|directement|commencer par|procéder à|y|en|le|la|les|essayer de|puis|vite|désormais)"
)
FRENCH = Phrases(
    leads=(
        r"(?:maintenant|d'abord|tout d'abord|ensuite|puis|alors|bon|bien|très bien|d'accord|ok|parfait|compris|et"
        r"|mais|donc|enfin|à présent|pour commencer|un instant|première étape|étape suivante|voyons)(?:,? )"
    ),
    joins=r"donc|alors|et|mais|puis|c'est pourquoi",
    announcing=(
        rf"(?:(?:je vais|nous allons|on va|je m'apprête à) (?:{_FR_ADVERB} ){{0,3}}(?:l'|les |le |la |y |en |vous "
        rf"|te )?{FR_INFINITIVE}(?!\w)"
        rf"|(?:laissez-moi|laisse-moi|permettez-moi de|permettez-moi d'|permets-moi de"
        rf"|permets-moi d') ?(?:{_FR_ADVERB} ){{0,2}}(?:l'|les |le |la |y )?{FR_INFINITIVE}(?!\w)"
        rf"|(?:je |j'|j'en |j'y |je l'|je le |je la |je les ){FR_PRESENT}(?!\w)"
        r"|(?:regardons|vérifions|voyons|examinons|consultons|cherchons|ouvrons|lançons|exécutons|testons|lisons"
        r"|analysons|commençons par|corrigeons|installons|explorons|listons)(?!\w))"
    ),
    before=(
        r"\b(?:si|s'il|lorsque|quand|dès que|une fois|aussitôt|au besoin|en cas|sinon|à moins|après (?:votre|ton|que)"
        r"|avec (?:votre|ton) accord|dites-moi|dis-moi|envoyez|envoie-moi|indiquez|indique-moi|donnez|donne-moi"
        r"|confirmez|confirme|partagez|collez|veuillez|s'il vous plaît|supposons|disons|imaginons|vous (?:pouvez"
        r"|devez|devriez|pourriez)|à l'avenir|désormais|dorénavant|demain|dit|écrit|par exemple|prenons)\b"
    ),
    behind=(
        r"\b(?:demain|plus tard|à l'avenir|toujours|chaque (?:fois|commit|jour|nuit|semaine)|quand (?:vous|tu)"
        r"|lorsque (?:vous|tu)|si (?:vous|tu|nécessaire|besoin|cela vous)|dès que|une fois|un exemple|exemples"
        r"|expliquer|résumer|préciser|jusqu'à ce que|après votre|prochaine fois|au besoin|pas|plus)\b"
    ),
    waiting=(
        r"(?:un (?:instant|moment)(?:,? s'il (?:vous|te) plaît)?|(?:veuillez )?patientez?(?: un instant)?"
        r"|une (?:seconde|minute))"
    ),
)

DE_INFINITIVE = (
    r"(?:lesen|einlesen|prüfen|überprüfen|nachprüfen|ansehen|anschauen|nachsehen|nachschauen|untersuchen|durchsehen"
    r"|öffnen|suchen|durchsuchen|finden|heraussuchen|abfragen|ausführen|starten|neu starten|testen|bauen|kompilieren"
    r"|installieren|nachinstallieren|aktualisieren|ändern|bearbeiten|anpassen"
    r"|korrigieren|beheben|reparieren|umbenennen|ersetzen|umschreiben|entfernen|löschen|aufräumen|leeren|erstellen"
    r"|anlegen|hinzufügen|ergänzen|einfügen|schreiben|erzeugen|generieren|implementieren|umsetzen|anwenden"
    r"|konfigurieren|einrichten|aktivieren|deaktivieren|ausschalten|einschalten|abspielen|senden|schicken|versenden"
    r"|speichern|kopieren|verschieben|zusammenführen|zurücksetzen|verbinden|aufrufen|abrufen|recherchieren|erkunden"
    r"|analysieren|debuggen|vergleichen|zählen|berechnen|auslesen|extrahieren|filtern|umwandeln|konvertieren|buchen"
    r"|eintragen|auflisten|holen|herunterladen|hochladen|laden|versuchen|probieren|ausprobieren|verwenden|nutzen"
    r"|ermitteln|herausfinden|beginnen|anfangen|fortfahren|vornehmen|durchführen|verschaffen|laufen lassen|werfen"
    r"|machen)"
)
_DE_PRESENT = (
    r"(?:lese|prüfe|überprüfe|untersuche|öffne|suche|durchsuche|frage|führe|starte|teste|baue|kompiliere|installiere"
    r"|aktualisiere|ändere|bearbeite|passe|korrigiere|behebe|repariere|benenne|ersetze|entferne|lösche|leere|erstelle"
    r"|lege|füge|ergänze|schreibe|erzeuge|generiere|implementiere|wende|konfiguriere|richte|aktiviere|deaktiviere"
    r"|schalte|spiele|sende|schicke|speichere|kopiere|verschiebe|setze|verbinde|rufe|recherchiere|erkunde|analysiere"
    r"|vergleiche|zähle|berechne|extrahiere|filtere|konvertiere|buche|trage|liste|hole|lade|versuche|probiere"
    r"|ermittle|beginne|fange|fahre|nehme|verschaffe|lasse|werfe einen|mache mich|schaue|schau|gucke|sehe (?:mir|nach"
    r"|kurz|jetzt|zuerst|nun|das|die|den))"
)
GERMAN = Phrases(
    leads=(
        r"(?:jetzt|nun|zuerst|zunächst|dann|danach|anschließend|als nächstes|als erstes|im nächsten schritt|okay|ok"
        r"|gut|alles klar|verstanden|moment|und|aber|also|deshalb|daher|abschließend|noch|außerdem"
        r"|schritt \d+)(?:,? )"
    ),
    joins=r"also|deshalb|daher|darum|und|aber|dann|jetzt|nun|danach|anschließend|zuerst|zunächst|noch",
    announcing=(
        rf"(?:(?:ich werde|werde ich|wir werden|werden wir) [^,:;]{{0,120}}?\b{DE_INFINITIVE}(?!\w)"
        rf"|(?:lass|lassen sie|lasst) (?:mich|uns) [^,:;]{{0,120}}?\b{DE_INFINITIVE}(?!\w)"
        rf"|ich {_DE_PRESENT}(?!\w)|{_DE_PRESENT} ich(?!\w)"
        r"|(?:schauen|sehen) wir (?:uns|mal|nach|zuerst|zunächst)(?!\w)|(?:prüfen|öffnen|lesen|starten|suchen|testen"
        r"|beginnen|untersuchen|überprüfen) wir (?:jetzt|nun|zuerst|zunächst|mal|mit|erst|einmal|die|das|den)(?!\w))"
    ),
    before=(
        r"\b(?:wenn|falls|sobald|bei bedarf|sofern|solange|nach (?:deiner|ihrer|der freigabe|eurer)|mit (?:deiner"
        r"|ihrer) (?:erlaubnis|zustimmung)|bitte(?! warten| einen)|sag|sagen sie|schick|schicke mir|schicken sie|nenn"
        r"|nennen sie|gib|geben sie|teile|teilen sie|bestätige|bestätigen sie|lade|laden sie|sende|antworte"
        r"|angenommen|stell dir|du (?:kannst|solltest|musst)|sie (?:können|sollten|müssen)|würde|könnte"
        r"|in zukunft|künftig|zukünftig|ab jetzt|ab sofort|von nun an|morgen|später|schreibt|sagt|zum beispiel"
        r"|beispielsweise|gerne?|bevor|ansonsten|sonst)\b"
    ),
    behind=(
        r"\b(?:nicht|kein\w*|nie|morgen|später|nachher|in zukunft|künftig|zukünftig|immer|stets|jedes mal|vor jedem"
        r"|nach jedem|jede[nrs]? (?:tag|nacht|woche|commit)|wenn (?:du|sie|es|ihr)|falls|sobald|sofern|bei bedarf"
        r"|gerne?|beispiel|beispiele|erklären|erläutern|zusammenfassen|wissen|mich (?:morgen|wieder)"
        r"|nächste[ns]? (?:mal|woche)|bis (?:du|sie)|nachdem (?:du|sie)|auf deine|auf ihre|davon aus|stelle|wert"
        r"|bereits|schon seit)\b"
    ),
    waiting=(
        r"(?:(?:einen |kleinen )?(?:moment|augenblick)(?: bitte)?|bitte (?:warten|einen moment(?: geduld)?)|(?:das"
        r"|dies) (?:kann|wird) (?:einen|kurz|etwas) .{0,30}dauern)"
    ),
)

_RU_FUTURE = (
    r"(?:прочитаю|прочту|проверю|посмотрю|просмотрю|гляну|взгляну|изучу|исследую|открою|найду|поищу|отыщу|запрошу"
    r"|выполню|запущу|протестирую|соберу|скомпилирую|установлю|переустановлю|обновлю|изменю|отредактирую|поправлю"
    r"|исправлю|починю|настрою|переименую|заменю|перепишу|удалю|уберу|очищу|создам|добавлю|вставлю|напишу (?:код|тест"
    r"|скрипт|файл|функци|□|новый|новую|юнит)|допишу"
    r"|сгенерирую|реализую|применю|внесу|сконфигурирую|включу|выключу|отключу|отправлю (?:запрос|письмо|тестов)"
    r"|сохраню|скопирую|перемещу|объединю|откачу|подключусь|перейду к|проанализирую|отлажу|сравню|посчитаю|подсчитаю"
    r"|вычислю|извлеку|отфильтрую|конвертирую|забронирую|запланирую|получу|скачаю|загружу|попробую|воспользуюсь"
    r"|использую|вызову|перезапущу|займусь|начну с|приступлю к|продолжу с|выведу|сделаю (?:это|запрос|резервн))"
)
_RU_PRESENT = (
    r"(?:читаю|проверяю|смотрю|просматриваю|изучаю|открываю|ищу|выполняю|запускаю|перезапускаю|тестирую|собираю"
    r"|устанавливаю|обновляю|изменяю|редактирую|исправляю|настраиваю|переименовываю|заменяю|удаляю|очищаю|создаю"
    r"|добавляю|применяю|вношу|включаю|выключаю|отключаю|сохраняю|анализирую|сравниваю|считаю строки|скачиваю"
    r"|загружаю|получаю|приступаю к|перехожу к|начинаю)"
)
RU_INFINITIVE = (
    r"(?:прочитать|проверить|посмотреть|просмотреть|заглянуть|взглянуть|изучить|открыть|найти|поискать|выполнить"
    r"|запустить|установить|обновить|изменить|отредактировать|исправить|удалить|создать|добавить|написать|применить"
    r"|проанализировать|сравнить|посчитать|скачать|загрузить|получить|попробовать|использовать|перезапустить|увидеть"
    r"|выяснить|внести|настроить|искать|начать)"
)
_RU_OUR = (
    r"(?:посмотрим|проверим|прочитаем|откроем|найдем|запустим|изучим|начнем с|попробуем|исправим|обновим|взглянем"
    r"|выполним|установим|создадим)"
)
RUSSIAN = Phrases(
    leads=(
        r"(?:сейчас|теперь|сначала|далее|затем|потом|после этого|хорошо|понял|поняла|понятно|ок|окей|итак|я|мы"
        r"|секунду|минуту|для начала|следующий шаг|следующим шагом|и|а|но|ну|также|еще|наконец|давайте|давай"
        r"|первым делом|в первую очередь|тогда|сразу|быстро|снова|отлично)(?:,? | — | - )"
    ),
    joins=r"поэтому|и|а|но|так что|затем|тогда",
    announcing=(
        rf"(?:(?:я )?(?:ее|его|их|это|все|сначала|сейчас|теперь|также|быстро|сразу|еще раз"
        rf"|снова){{0,1}} ?{_RU_FUTURE}(?!\w)"
        rf"|(?:позвольте|позволь|дайте|дай)(?: мне)? (?:сначала |быстро |сейчас ){{0,2}}{RU_INFINITIVE}(?!\w)"
        rf"|(?:я )?(?:собираюсь|хочу сначала|намерен|буду) (?:сначала |сейчас |теперь ){{0,2}}{RU_INFINITIVE}(?!\w)"
        rf"|мне (?:нужно|надо) (?:сначала )?{RU_INFINITIVE}(?!\w)"
        rf"|{_RU_PRESENT}(?!\w)|{_RU_OUR}(?!\w))"
    ),
    before=(
        r"\b(?:если|когда|как только|после (?:вашего|твоего|того как|подтверждения)|при необходимости|в случае|пока"
        r"|иначе|пришлите|пришли|отправьте|отправь|назовите|назови|скажите|скажи|дайте знать|сообщите|напишите"
        r"|укажите|подтвердите|пожалуйста(?!,? подождите)|поделитесь|загрузите|допустим|предположим|представим|скажем"
        r"|вы (?:можете|должны)|вам (?:стоит|нужно|следует)|бы|в будущем|отныне|впредь|с этого момента|завтра|позже"
        r"|пишет|говорит|написал|например|функция|скрипт|программа|он|она|они|оно)\b"
    ),
    behind=(
        r"\b(?:завтра|позже|потом|в будущем|всегда|каждый раз|каждую|каждый|перед каждым|если (?:хотите|нужно|вы|ты"
        r"|потребуется|что)|когда (?:вы|ты|будет)|как только|после (?:вашего|того как|подтверждения)"
        r"|при необходимости|пример|примеры|объясн\w+|итог|разницу|вам завтра|в следующий раз|пока вы|бы|не буду)\b"
    ),
    waiting=(
        r"(?:(?:одну |один )?(?:секунду|минуту|минутку|секундочку|момент)(?:,? пожалуйста)?"
        r"|(?:пожалуйста,? )?подождите(?: немного| минуту)?)"
    ),
)

_JA_STEM = (
    r"(?:確認|検証|調査|検索|実行|再実行|更新|修正|変更|編集|作成|削除|追加|取得|分析|解析|比較|抽出|適用|インストール|ダウンロード|アップロード|テスト|チェック|ビルド|コンパイル|デプロイ|起動"
    r"|再起動|設定|送信|保存|コピー|移動|リネーム|置換|生成|実装|計算|集計|予約|登録|オフに|オンに|読み取り|読み込み|リファクタリング|デバッグ|閲覧|クエリ|特定|参照|接続|スキャン|整理|反映|有効化"
    r"|無効化|実施|開始|呼び出し|把握)(?:を)?"
)
_JA_END = r"(?:ましょう|ますね|ます)"
_JA_TRY = r"(?:てみ|ていき|ておき|にいき|始め|直し)?"
JAPANESE = Phrases(
    leads=r"(?:では|それでは|じゃあ|まず(?:は)?|次に|次は|続いて|続けて|今から|これから|最初に|さっそく|早速|今度は|はい|了解です|承知しました|私が|私は|今すぐ|すぐに|最後に)[、 ]?",
    joins=r"ので|ため|から|ますので",
    announcing=(
        rf"[^。]{{0,200}}?(?:{_JA_STEM}(?:(?:いたし|致し|し)(?:てみ|ていき)?{_JA_END}|させていただきます|させてください|していきます)"
        rf"|(?:読み込み|読み|読ん(?=でみ)|開き|開い(?=てみ)|見(?=てみ|ていき|ましょう|ますね)|調べ|探し|探っ(?=てみ)|お調べし|お探しし|消し|つけ|点け|切り|直し|書き|書き換え|書き込み"
        rf"|書い(?=ていき)|試し|数え|覗い(?=てみ)|のぞい(?=てみ)|走らせ|動かし|取り除き|切り替え|読み進め|進め|取りかかり|取り掛かり|呼び出し|取り出し|立ち上げ|組み込み|置き換え|付け加え|加え"
        rf"|送り|見直し|洗い出し|使っ(?=てみ)|やっ(?=てみ)|読み始め)"
        rf"(?:{_JA_TRY}|でみ|でいき){_JA_END}"
        r"|(?:調べ|見|確認し|検索し|読み込ん|実行し|取得し|探し)(?:て|で)(?:い)?ます(?=[^。]{0,3}(?:…|\.\.\.|・・))"
        r"|見てみましょう|見てみます|ログを見せてください)(?:\.\.\.)?$"
    ),
    before=r"(?!)",
    behind=(
        r"(?:もし|仮に|場合|れば|たら|なら|次第|必要に応じ|希望|例えば|たとえば|例を|今後|これからは|以降|毎回|毎晩|毎日|常に|必ず|いつも|明日|後で|のちほど|後ほど|また今度|次回|将来|承認|許可"
        r"|いただいた後|いただき|説明|要約|補足|まとめ|回答|お答え|連絡|お待ち|待ち|覚え|念頭|ません|ください.|喜んで|お手伝い|できます|ことも|と書|という|自動的に|自動で|により|によって|すると"
        r"|[^、]*(?:関数|スクリプト|アプリ|コマンド|プログラム|メソッド|クラス|ジョブ|サーバー|ツール|エージェント|ボタン|処理|システム|モデル|オプション)(?:は|が)"
        r"|(?<!で)(?<!まず)(?<!今度)(?<!次)(?<!私)は[^、。]*ます|[^、]が[^、]{1,30}を[^、]*ます(?!.*、))"
    ),
    waiting=r"(?:少々|しばらく|少し)(?:お待ち(?:ください|くださいませ)|待ってください(?:ね)?)",
)

_AR_VERB = (
    r"(?:قرا|تحقق|تاكد|شغل|حدث|راجع|ثبت|حاول|طفئ|شعل|بحث|بدا ب|بدا بال|بدا|جرب|ستعلم|حذف|زيل|فتح|نشئ|صلح|ستخدم|عدل"
    r"|غير|نزل|حمل|رفع|قارن|عيد|حلل|طبق|قوم ب|نفذ|كتب ال|كتب ملف|كتب اختبار|كتب كود|ضيف|رسل ال|رسل طلب|ستعرض|لقي نظره"
    r"|لقي نظرة|لق نظرة|طلع|فحص|جلب|ستخرج|حسب|عد ال|نسخ|نقل|حفظ|صحح|ستبدل|فعل|عطل|ضبط|جدول|حجز|ري|رى|نظر|ستدعي|ختبر"
    r"|بني|نشر|عرض قائمة|عرض محتو|دمج|ستكشف|تفحص|تفقد|تابع ب|واصل)"
)
ARABIC = Phrases(
    leads=(
        r"(?:الان|اولا|ثم|بعد ذلك|حسنا|حسنًا|فهمت|تمام|لحظة من فضلك|لذلك|لذا|و|الخطوة التالية|ثانيا|اخيرا|بالتاكيد"
        r"|سوف|في البداية|بداية)[،,:]? "
    ),
    joins=r"لذلك|لذا|ثم|والان|الان|و|ف",
    announcing=(
        rf"(?:و|ف)?(?:(?:سا|سوف ا|سن|سوف ن){_AR_VERB}|(?:دعني|دعيني|دعوني) (?:الان |اولا |فقط )?ا{_AR_VERB}|(?:دعنا"
        rf"|دعونا) (?:الان |اولا )?ن{_AR_VERB}|(?:اسمح|اسمحي|اسمحوا) لي (?:ب|ان ا)(?:مراجعة|قراءة|فحص|البحث|التحقق"
        rf"|تشغيل|فتح|القاء|تحديث|{_AR_VERB})"
        r"|لن(?:لق نظرة|لقي نظرة|بدا ب|تحقق|فحص|فتح|قرا|شغل|بحث|رى|ر |راجع)|(?:اقوم|ساقوم|سوف اقوم) (?:الان )?ب\w+"
        r"|اتحقق(?= من)(?=.*(?:…|\.\.\.))|(?:ابدا|اقوم) الان)"
    ),
    before=(
        r"(?:^|\s)(?:و|ف)?(?:اذا|ان اردت|لو|عندما|بمجرد|حالما|عند الحاجة|عند الضرورة|بعد (?:موافقتك|تاكيدك|ان)|في حال"
        r"|ارسل|ارسلي|اخبرني|اعطني|زودني|شارك|اكد|من فضلك(?! ،)|يرجى|لنفترض|لنقل|تخيل|يمكنك|يجب عليك|في المستقبل"
        r"|من الان فصاعدا|مستقبلا|غدا|يكتب|يقول|مثلا)(?:\s|،|,|$)"
    ),
    behind=(
        r"(?:^|\s)(?:و|ف)?(?:غدا|لاحقا|في المستقبل|دائما|كل (?:مرة|يوم|ليلة|ايداع)|قبل كل|اذا|ان اردت|عندما (?:ت"
        r"|ي)\w*|بمجرد|بعد (?:موافقتك|تاكيدك|ان ت\w*)|عند الحاجة|مثال|مثالا|الامثلة|في الاعتبار|شرح|بشرح|توضيح|بتوضيح"
        r"|تلخيص|بتلخيص|بالشرح|بانتظار|بالرد|معك)(?:\s|،|,|\.|:|$)"
    ),
    waiting=r"(?:لحظة(?: واحدة)?(?: من فضلك)?|(?:يرجى|الرجاء) الانتظار|انتظر (?:لحظة|قليلا))",
)

_HI_NOUN = (
    r"(?:अपडेट|इंस्टॉल|डाउनलोड|अपलोड|चेक|टेस्ट|रन|सर्च|बंद|चालू|ऑन|ऑफ|ठीक|सही|संपादित|एडिट|फिक्स|डिलीट|क्रिएट|जांच"
    r"|की जांच|तुलना|की तुलना|विश्लेषण|का विश्लेषण|खोज|की खोज|लागू|कोशिश|शुरू|प्राप्त|सेव|कॉपी|जोड|साफ|निर्माण|उपयोग"
    r"|का उपयोग|प्रयोग|निरीक्षण|समीक्षा|सत्यापित|सत्यापन|कॉल|क्वेरी|सेट|रीस्टार्ट|सूचीबद्ध|गणना|संशोधित|बुक|शेड्यूल"
    r"|डिप्लॉय|बिल्ड|हल|दूर|समाधान|एनालाइज|ओपन|रीड|पुष्टि|निष्पादित|एक्सट्रैक्ट|इस्तेमाल|पता) कर"
)
_HI_STEM = (
    r"(?:पढ|जांच|चला|देख|खोज|ढूंढ|खोल|बना|हटा|मिटा|आजमा|गिन|निकाल|लिख|जोड|बदल|सुधार|डाल|ला|मंगा|लगा|पता लगा"
    r"|भेज(?= रहा| रही)|सहेज|टटोल|परख|बुझा|जला|नजर डाल|पुनः प्रयास कर|" + _HI_NOUN + ")"
)
HINDI = Phrases(
    leads=(
        r"(?:अब|पहले|सबसे पहले|फिर|इसके बाद|आगे|तो|ठीक है|अच्छा|समझ गया|समझ गई|इसलिए|अगला कदम|और|लेकिन|एक क्षण रुकिए"
        r"|एक क्षण|जी|चलिए|आइए|अंत में|अगले चरण में)[,:]? "
    ),
    joins=r"इसलिए|तो|और|लेकिन|अब",
    announcing=(
        rf"(?:(?:मैं|हम) [^।:]{{0,120}}?(?:^|\s){_HI_STEM}(?:ता|ती|ते)? ?(?:के |कर |ने |ना )?(?:हूं|हैं|ूंगा|ूंगी"
        rf"|ऊंगा|ऊंगी|ेंगे|एंगे|रहा हूं|रही हूं|जा रहा हूं|जा रही हूं|लेता हूं|लेती हूं|देता हूं|देती हूं|दूंगा|दूंगी"
        rf"|लूंगा|लूंगी)(?:\.\.\.)?$"
        rf"|(?:मुझे|मुझको) [^।:]{{0,120}}?{_HI_STEM}ने (?:दीजिए|दें|दो)(?:\.\.\.)?$"
        rf"|(?:आइए|चलिए|चलो|आओ|सबसे पहले|पहले|अब) [^।]{{0,120}}?(?:^|\s){_HI_STEM}(?:ते हैं|ें|ते है"
        rf"|ने से शुरू करते हैं)(?:\.\.\.)?$"
        rf"|मैं [^।:]{{0,120}}?{_HI_STEM}ने से शुरू (?:करूंगा|करूंगी|करता हूं|करती हूं)(?:\.\.\.)?$)"
    ),
    before=(
        r"(?:अगर|यदि|जब|जैसे ही|बशर्ते|मान ल|आप (?:चाहें|पुष्टि)|आपकी (?:अनुमति|पुष्टि)|चाहें तो|ज़?रूरत पड|बताइए"
        r"|बताएं|भेजिए|भेजें|कृपया|दीजिए (?:और|फिर)|भविष्य में|अब से|आगे से|कल|क्या|नहीं|लिखता है|कहता है)"
    ),
    behind=(
        r"(?:अगर|यदि|जब (?:आप|भी)|जैसे ही|नहीं|कल |बाद में|भविष्य|हमेशा|हर (?:बार|कमिट|रोज|दिन)|उदाहरण|समझा|सारांश"
        r"|स्पष्ट|याद|ध्यान|प्रतीक्षा|इंतजार|संपर्क|सकता|सकती|अनुमति|पुष्टि के बाद|आपके कहने|अब से|रुकता|अनुमति के)"
    ),
    waiting=(
        r"(?:(?:कृपया )?(?:एक|थोडा) (?:क्षण|पल|मिनट|सेकंड)(?: (?:रुकिए|रुकें|दीजिए|प्रतीक्षा करें))?"
        r"|कृपया (?:प्रतीक्षा करें|रुकें))"
    ),
)

KOREAN = Phrases(
    leads=r"(?:이제|먼저|우선|다음으로|그럼|그러면|그다음|지금|좋습니다|네|알겠습니다|제가|바로)[, ]?",
    joins=r"그래서|따라서|그럼",
    announcing=(
        r"[^.]{0,200}?(?:확인|검토|검색|실행|수정|변경|업데이트|생성|삭제|추가|설치|분석|비교|조회|테스트|편집|작성|적용|재시작|시작|빌드|배포|다운로드|추출|계산|점검|조사|탐색|저장"
        r"|전송)(?:을|를)?"
        r" ?(?:해 ?보겠습니다|하겠습니다|해 ?볼게요|할게요|해 ?보죠|해 ?봅시다)(?:\.\.\.)?$"
        r"|[^.]{0,200}?(?:읽어|살펴|열어|찾아|알아|고쳐|만들어|돌려|바꿔|지워|꺼|켜)(?: ?보)?(?:겠습니다|ㄹ게요|볼게요|볼게|보죠|봅시다| 드리겠습니다"
        r"|드릴게요)(?:\.\.\.)?$"
        r"|[^.]{0,200}?(?:읽|열|찾|고치|만들|바꾸|지우|끄|켜)겠습니다(?:\.\.\.)?$"
    ),
    before=r"(?!)",
    behind=r"(?:면 |다면|하시면|주시면|되면|경우|필요 ?시|원하시|나중에|내일|앞으로|항상|매번|예를 들|예시|설명|요약|정리해|기다리|기억|않겠습니다|못|후에|승인|언제든)",
    waiting=r"(?:잠시만|잠깐만)(?: 기다려 ?(?:주세요|주십시오))?(?:요)?",
)

LANGUAGES = (
    ENGLISH,
    CHINESE,
    SPANISH,
    HINDI,
    ARABIC,
    PORTUGUESE,
    RUSSIAN,
    JAPANESE,
    GERMAN,
    FRENCH,
    KOREAN,
)
