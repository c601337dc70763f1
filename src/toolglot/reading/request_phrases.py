"""Phrases with which users ask for action, one record per language; see ``narrated_stops``.

A request is an imperative, a polite question ("can you ...") or a need ("I want you to ..."), with a verb of acting.
"""

from __future__ import annotations

from msgspec import Struct

from toolglot.reading.narrated_phrases import (
    DE_INFINITIVE,
    EN_VERB,
    ES_INFINITIVE,
    FR_INFINITIVE,
    FR_PRESENT,
    PT_INFINITIVE,
    RU_INFINITIVE,
)


class Requests(Struct, frozen=True, kw_only=True):
    """Regular expressions of one language."""

    asking: str
    """The beginning of a clause in which a user asks for something to be done."""
    declining: str
    """What makes a sentence no request for action: explanations, plans, opinions."""


ENGLISH = Requests(
    asking=(
        r"(?:(?:please|kindly|now|then|next|also|first|and|ok|okay|great|thanks|good|yes|sure|hey|hi|hello|so|but"
        r"|just|instead|finally|perfect)\b,? ){0,4}"
        rf"(?:(?:can|could|would|will) you (?:please |also |now |then |quickly |just ){{0,2}}|(?:i want|i need"
        rf"|i'd like|i would like) you to |you (?:should|must|need to|have to) |let's |go and |help me (?:to )?"
        rf"|i need to |we need to |i want to |i'd like to |your task is to )?"
        rf"(?:{EN_VERB}(?!\w)|write|send|set|make|get|give it|put|do (?:it|that|this|so)|go ahead|go on|continue"
        rf"|proceed|keep going|carry on|try|look|see|book|remind me|turn|stop|order|call|migrate|port|bump|wrap|sort"
        rf"|organi[sz]e|clone|init|initiali[sz]e|scaffold|optimi[sz]e|improve|speed up|split|extend|integrate|resolve"
        rf"|solve|publish|release|backup|back up|archive|zip|unzip|translate the file|finish|complete|handle"
        rf"|take care)\b"
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
)
CHINESE = Requests(
    asking=(
        r"(?:(?:请|麻烦|帮我|帮忙|给我|替我|你?能不能|你?可以|可否|能否|你能|您能|能|现在|然后|接着|接下来|首先|先|再|好的?|是的|那就|那|我想让你|我要你|我需要你|我想|直接|继续|把|将"
        r"|立即|马上|对|在|用|顺便|同时|去|来)[，, ]?){0,5}"
        r"(?:[^，。？?！!\n]{0,30}?)"
        r"(?:检查|查一?下|查找|查询|搜索|打开|运行|执行|跑|测试|构建|编译|部署|启动|重启|安装|卸载|升级|更新|修改|编辑|改成|改为|改|修复|修正|调整|重构|重命名|替换|重写|删除|删掉|移除"
        r"|清理|创建|新建|添加|加上|增加|插入|写|生成|实现|应用|设置|设为|配置|启用|禁用|关掉|关闭|调暗|调到|播放|发送|发给|发一?封|保存|复制|移动|合并|提交|下载|上传|推送|预订|预定|安排"
        r"|整理|排序|转换|迁移|优化|继续|开始吧|做吧|动手|处理|完成|读取|看看|看一下|列出|统计|分析)"
    ),
    declining=(
        r"解释|说明|介绍|总结|概括|为什么|为何|怎么|如何|什么|哪|是不是|有没有|是否|吗|不要(?:改|动|修改|执行|运行)|别(?:改|动|修改|执行|运行)|先别|计划|方案|思路|建议|意见|看法|觉得"
        r"|故事|笑话|诗|谢谢"
    ),
)
SPANISH = Requests(
    asking=(
        r"(?:(?:por favor|ahora|luego|después|también|primero|ok|vale|bien|gracias|sí|hola|y|entonces|ahora mismo"
        r"|solo|perfecto)\b,? ){0,4}"
        r"¿?(?:(?:me )?(?:puedes|podrías|puede|podría) |(?:quiero|necesito|quisiera|me gustaría) (?:que )?|ayúdame a "
        r"|hay que |tienes que |debes |vamos a )?"
        rf"(?:{ES_INFINITIVE}(?:me|lo|la|los|las|melo|le)?|(?:lee|lea|revisa|revise|revises|verifica|verifique"
        rf"|comprueba|compruebe|busca|busque|busques|búscame|abre|abra|consulta|ejecuta|ejecute|ejecutes|corre|corra"
        rf"|prueba|lanza|compila|despliega|inicia|reinicia|reinicie|instala|instale|actualiza|actualice|actualices"
        rf"|modifica|edita|cambia|cambie|corrige|corrija|arregla|arregle|arregles|ajusta|renombra|reemplaza|elimina"
        rf"|elimine|borra|borre|borres|quita|limpia|crea|cree|crees|agrega|añade|escribe|genera|implementa|aplica"
        rf"|configura|activa|desactiva|apaga|apague|enciende|encienda|pon|ponga|envía|envíe|envíale|manda|mándale"
        rf"|guarda|copia|mueve|analiza|compara|calcula|extrae|convierte|programa|agenda|reserva|lista|descarga|sube"
        rf"|haz|hazlo|continúa|sigue|procede|adelante|mira|migra|optimiza|refactoriza))(?!\w)"
    ),
    declining=(
        r"\b(?:explica|explícame|explicar|describe|resume|resúmeme|dime|por qué|cómo|qué (?:es|hace|opinas|significa)"
        r"|cuál|plan|propuesta|no (?:cambies|toques|modifiques|ejecutes|hagas|edites)|sin (?:cambiar|ejecutar|tocar"
        r"|modificar)|solo (?:explica|dime|quiero saber)|opinión|poema|cuento|chiste|historia|diferencia)\b"
    ),
)
PORTUGUESE = Requests(
    asking=(
        r"(?:(?:por favor|agora|depois|também|primeiro|ok|certo|obrigado|obrigada|sim|olá|oi|e|então|só"
        r"|perfeito)\b,? ){0,4}"
        r"(?:(?:você )?(?:pode|poderia|consegue) |(?:quero|preciso|gostaria) (?:que você |de )?|me ajude a |tem que "
        r"|precisa |vamos )?"
        rf"(?:{PT_INFINITIVE}(?:-(?:o|a|os|as|me))?|(?:leia|verifique|confira|cheque|busque|procure|pesquise|abra"
        rf"|consulte|execute|rode|teste|compile|inicie|reinicie|instale|atualize|modifique|edite|altere|mude|corrija"
        rf"|conserte|arrume|ajuste|renomeie|substitua|remova|exclua|apague|delete|limpe|crie|adicione|escreva|gere"
        rf"|implemente|aplique|configure|ative|desative|desligue|ligue|acenda|envie|mande|salve|copie|mova|analise"
        rf"|compare|calcule|extraia|converta|agende|marque|reserve|liste|baixe|suba|faça|continue|prossiga|siga"
        rf"|pode continuar|migre|otimize|refatore|roda|cria|arruma|apaga|abre|corrige|manda|liga|desliga|coloca"
        rf"|coloque))(?!\w)"
    ),
    declining=(
        r"\b(?:explique|explica|explicar|descreva|resuma|resumir|me diga|diga|por que|porquê|como|o que (?:é|faz|acha"
        r"|significa)|qual|plano|proposta|não (?:mude|altere|mexa|modifique|execute|faça|edite)|sem (?:mudar|executar"
        r"|mexer|alterar|modificar)|só (?:explique|me diga|quero saber)|opinião|poema|conto|piada|história"
        r"|diferença)\b"
    ),
)
FRENCH = Requests(
    asking=(
        r"(?:(?:s'il (?:te|vous) plaît|stp|svp|maintenant|ensuite|puis|aussi|d'abord|ok|bien|merci|oui|bonjour|salut"
        r"|et|alors|parfait)\b,? ){0,4}"
        r"(?:(?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|vous pouvez) (?:me |m'|aussi )?|(?:je veux"
        r"|je voudrais|j'aimerais|il faut|j'ai besoin) (?:que tu |que vous |de )?|aide-moi à |aidez-moi à |tu dois "
        r"|vous devez )?"
        rf"(?:{FR_INFINITIVE}|{FR_PRESENT}|(?:lisez|vérifiez|regardez|consultez|cherchez|recherchez|ouvrez|exécutez"
        rf"|lancez|testez|compilez|déployez|démarrez|redémarrez|installez|mettez|mets|modifiez|changez|corrigez"
        rf"|réparez|ajustez|renommez|remplacez|supprimez|effacez|nettoyez|créez|ajoutez|écrivez|rédigez|générez"
        rf"|appliquez|configurez|activez|désactivez|éteignez|allumez|envoyez|enregistrez|copiez|déplacez|analysez"
        rf"|comparez|calculez|extrayez|téléchargez|réservez|planifiez|listez|fais-le|faites-le|continue|continuez"
        rf"|vas-y|allez-y|poursuis|poursuivez|convertis|convertissez|migre|optimise|ouvre-le|trie|triez|range|baisse"
        rf"|monte))(?!\w)"
    ),
    declining=(
        r"\b(?:explique|expliquez|expliquer|décris|décrivez|résume|résumez|dis-moi|dites-moi|pourquoi|comment"
        r"|qu'est-ce|quel(?:le)?s?|plan|proposition|ne (?:change|modifie|touche|lance|fais|exécute)\w* (?:rien|pas)"
        r"|sans (?:changer|exécuter|toucher|modifier|lancer)|seulement (?:expliquer|savoir)|avis|poème|histoire"
        r"|blague|différence)\b"
    ),
)
GERMAN = Requests(
    asking=(
        r"(?:(?:bitte|jetzt|nun|dann|danach|auch|zuerst|ok|okay|gut|danke|ja|hallo|hi|und|also|super|mal)\b,? ){0,4}"
        r"(?:(?:kannst|könntest|würdest|können|könnten|würden) (?:du"
        r"|sie) .{0,120}?\b(?:" + DE_INFINITIVE[3:] + r"(?!\w)|(?:ich (?:möchte|will), dass du|du sollst|hilf mir)\b"
        r"|(?:lies|prüfe?|überprüfe?|öffne|suche?|such mir|durchsuche|führe?|starte|teste|baue?|kompiliere"
        r"|installiere|aktualisiere|ändere?|bearbeite|passe?|korrigiere|behebe?|repariere|benenne|ersetze|entferne"
        r"|lösche?|leere|erstelle?|lege?|füge?|ergänze|schreibe?|erzeuge|generiere|implementiere|wende|konfiguriere"
        r"|richte|aktiviere|deaktiviere|schalte?|mach(?:e|s)?|spiele?|sende|schicke?|speichere?|kopiere|verschiebe"
        r"|setze?|rufe?|recherchiere|analysiere|vergleiche|zähle?|berechne|extrahiere|konvertiere|buche?|trage?|liste"
        r"|hole?|lade|sieh|schaue?|weiter|fahre? fort|leg los|prüfen sie|öffnen sie|starten sie|führen sie"
        r"|erstellen sie|löschen sie|ändern sie|schalten sie|senden sie|aktualisieren sie|korrigieren sie|beheben sie"
        r"|installieren sie|optimiere|migriere|sortiere|räum)(?!\w))"
    ),
    declining=(
        r"\b(?:erkläre?|erklären|beschreibe?|fass\w* .{0,40}zusammen|sag mir|warum|wieso|weshalb|wie|was|welche[rsn]?"
        r"|plan|vorschlag|konzept|ändere? (?:noch )?nichts|nichts (?:ändern|ausführen)|ohne (?:etwas )?zu (?:ändern"
        r"|starten)|ohne (?:änderung|ausführung)|nur (?:erklären|wissen)|meinung|gedicht|geschichte|witz"
        r"|unterschied)\b"
    ),
)
RUSSIAN = Requests(
    asking=(
        r"(?:(?:пожалуйста|теперь|потом|затем|также|сначала|ок|хорошо|спасибо|да|привет|здравствуйте|и|а|ну|просто"
        r"|отлично|сейчас)\b,? ){0,4}"
        rf"(?:(?:можешь|можете|мог бы|могли бы|не мог бы|сможешь) (?:ты |вы )?(?:пожалуйста )?|(?:мне )?(?:нужно|надо"
        rf"|хочу|необходимо) (?:чтобы ты |чтобы вы )?|помоги(?:те)? )?"
        rf"(?:{RU_INFINITIVE}|(?:прочитай|прочти|проверь|посмотри|просмотри|изучи|открой|найди|поищи|выполни|запусти"
        rf"|перезапусти|протестируй|собери|установи|обнови|измени|отредактируй|поправь|исправь|почини|настрой"
        rf"|переименуй|замени|перепиши|удали|убери|очисти|создай|добавь|вставь|напиши|сгенерируй|реализуй|примени"
        rf"|внеси|включи|выключи|отключи|отправь|сохрани|скопируй|перемести|объедини|откати|проанализируй|сравни"
        rf"|посчитай|вычисли|извлеки|конвертируй|забронируй|запланируй|получи|скачай|загрузи|сделай|продолжай"
        rf"|действуй|давай дальше|оптимизируй|мигрируй|отсортируй)(?:те)?|продолжи)(?!\w)"
    ),
    declining=(
        r"\b(?:объясни\w*|опиши\w*|расскажи\w*|подведи\w*|скажи\w*|почему|зачем|как|что (?:такое|делает|думаешь"
        r"|значит)|какой|какая|какие|план\w*|предложени\w*|ничего не (?:меняй|делай|трогай|запускай)\w*|не (?:меняй"
        r"|трогай|запускай|изменяй)\w*|без изменений|только (?:объясни|план)|мнение|стих\w*|рассказ|историю|шутк\w*"
        r"|анекдот|разниц\w*)\b"
    ),
)
JAPANESE = Requests(
    asking=(
        r"[^。！!\n]{0,200}?(?:して(?:ください|下さい|くれ|ほしい|欲しい|もらえ|いただけ|くれますか|もらえますか)|て(?:ください|下さい|ほしい|欲しい)|で(?:ください|下さい|ほしい"
        r"|欲しい)|お願い(?:します|いたします|しま)|(?:修正|更新|追加|削除|実行|作成|変更|送信|確認|検索|続け|直し|消し|つけ|開い)(?:して|て)$|続けて|進めて|頼む|やって)"
    ),
    declining=(
        r"説明|教え|解説|要約|なぜ|どうして|どうやって|どのよう|何(?:です|が|を|の)|どう思|とは|計画|案を|提案|方針|変更しないで|実行しないで|しないで|意見|感想|詩|物語|ジョーク|違い|ありがとう"
    ),
)
ARABIC = Requests(
    asking=(
        r"(?:(?:من فضلك|رجاء|الان|ثم|ايضا|اولا|حسنا|شكرا|نعم|مرحبا|لو سمحت)[،,]? ?){0,4}(?:(?:هل )?(?:يمكنك|تستطيع"
        r"|بامكانك) (?:ان )?|(?:اريد|احتاج)(?: منك)? (?:ان )?|ارجو |ارجوك |قم ب|ساعدني في )?"
        r"(?:و|ف)?(?:ت?(?:اقرا|قرا|تحقق|تاكد|شغل|حدث|راجع|ثبت|اطفئ|طفئ|شعل|اشعل|ابحث|بحث|احذف|حذف|افتح|فتح|انشئ|نشئ"
        r"|اصلح|صلح|عدل|غير|نزل|حمل|ارفع|قارن|اعد|حلل|طبق|نفذ|اكتب|كتب|اضف|ضيف|ارسل|رسل|استخرج|احسب|انسخ|انقل|احفظ"
        r"|صحح|استبدل|فعل|عطل|اضبط|احجز|اختبر|انشر|استمر|تابع|اكمل|شغل)|تشغيل|حذف|انشاء|تحديث|اصلاح|تعديل|اضافة|فتح"
        r"|تنزيل)(?:\s|ه|ها|$)"
    ),
    declining=(
        r"اشرح|تشرح|وضح|توضح|لخص|تلخص|صف |اخبرني|لماذا|كيف|ما (?:هو|هي|معنى|رايك|الفرق)|ماذا|اي |خطة|اقتراح"
        r"|لا (?:تغير|تعدل|تنفذ|تلمس|تشغل)|دون (?:تغيير|تنفيذ|تعديل)|فقط (?:اشرح|اخبرني)|رايك|قصيدة|قصة|نكتة|الفرق"
    ),
)
HINDI = Requests(
    asking=(
        r"[^।?\n]{0,200}?(?:करो|करें|कीजिए|कर दो|कर दें|कर दीजिए|दो|दीजिए|चलाओ|चलाएं|चलाइए|बनाओ|बनाएं|बनाइए|हटाओ"
        r"|हटाएं|हटाइए|खोलो|खोलें|खोलिए|पढो|पढें|पढिए|जांचो|जांचें|जांचिए|खोजो|खोजें|खोजिए|ढूंढो|ढूंढें|ढूंढिए|जोडो"
        r"|जोडें|जोडिए|लिखो|लिखें|लिखिए|भेजो|भेजें|भेजिए|बदलो|बदलें|बदलिए|देखो|देखें|देखिए|सुधारो|सुधारें|सुधारिए"
        r"|जारी रखो|जारी रखें|डालो|लगाओ|लगाएं|कर सकते हैं|कर सकती हैं)(?: प्लीज)?$"
    ),
    declining=(
        r"समझा|बताओ|बताएं|बताइए|क्यों|कैसे|क्या (?:है|होता|मतलब|सोचते)|कौन|योजना|सुझाव|मत |न करें|बिना बदले|सिर्फ समझ"
        r"|राय|कविता|कहानी|चुटकुला|अंतर|सारांश|वर्णन"
    ),
)
KOREAN = Requests(
    asking=(
        r"[^.\n]{0,200}?(?:해 ?줘|해 ?주세요|해줄래|해 ?주십시오|하세요|해라|고쳐 ?줘|만들어 ?줘|열어 ?줘|읽어 ?줘|찾아 ?줘|켜 ?줘|꺼 ?줘|보내 ?줘|바꿔 ?줘|지워 ?줘"
        r"|부탁(?:해|합니다|드립니다)|계속(?:해|해줘|하세요)?)(?:요)?$"
    ),
    declining=r"설명|알려|왜|어떻게|무엇|뭐|무슨|계획|제안|의견|요약|하지 ?마|시|이야기|농담|차이",
)

REQUESTS = (
    ENGLISH,
    CHINESE,
    SPANISH,
    PORTUGUESE,
    FRENCH,
    GERMAN,
    RUSSIAN,
    JAPANESE,
    ARABIC,
    HINDI,
    KOREAN,
)

POLITE = (
    r"\b(?:can|could|would|will) you\b|能不能|可以|可否|能否|[你您]能|\b(?:puedes|podrías|puede|podría|te importaría)\b|सकते हैं"
    r"|सकती हैं|सकते हो"
    r"|يمكنك|تستطيع|بامكانك|\b(?:pode|poderia|consegue)\b|\b(?:можешь|можете|мог бы|могли бы|сможешь)\b|もらえ|くれ|いただけ"
    r"|(?:お願い|くださ)"
    r"|\b(?:kannst|könntest|würdest|können|könnten|würden) (?:du|sie)\b|\b(?:peux-tu|pouvez-vous|pourrais-tu"
    r"|pourriez-vous|tu peux|vous pouvez)\b|줄래|주실|줄 수"
)
"""What makes a question a request."""

FORBIDDING = (
    r"\bdo(?:n't| not) (?:change|edit|run|do|touch|modify|execute|write|make|call|start|implement)\b"
    r"|\bwithout (?:changing|running|editing|touching|executing)\b"
    r"|不要(?:改|动|修改|执行|运行)|别(?:改|动|修改|执行|运行)|先别|\bno (?:cambies|toques|modifiques|ejecutes|hagas|edites)\b"
    r"|\bsin (?:cambiar|ejecutar|tocar|modificar)\b"
    r"|मत (?:बदल|कर|चला|छू)|بدون (?:تغيير|تنفيذ|تعديل)|دون (?:تغيير|تنفيذ|تعديل)|لا (?:تغير|تعدل|تنفذ|تلمس|تشغل)"
    r"|\bnão (?:mude|altere|mexa|modifique|execute|faça|edite)\b|\bsem (?:mudar|executar|mexer|alterar|modificar)\b"
    r"|ничего не (?:меняй|делай|трогай|запускай)|\bне (?:меняй|трогай|запускай|изменяй)|(?:変更|実行|編集)しないで"
    r"|\b(?:ändere|mach|führe)\w* (?:bitte )?(?:noch )?nichts\b|\bohne (?:etwas )?zu (?:ändern|starten)\b"
    r"|\bne (?:change|modifie|touche|lance|fais|exécute)\w* (?:rien|pas)\b|\bsans (?:rien )?(?:changer|exécuter"
    r"|toucher|modifier|lancer)\b|하지 ?마"
)
"""What makes a whole message no request for action."""

AGREEING = (
    r"(?:yes|yep|yeah|sure|ok|okay|please|好的?|是的?|可以|行|对|嗯|sí|si|claro|vale|dale|por favor|हाँ|हां|जी हां|ठीक है|نعم"
    r"|اجل|حسنا|تمام|sim|claro|pode|pode ser|isso|да|давай|конечно|хорошо"
    r"|はい|お願いします|ええ|うん|ja|gerne|klar|bitte|oui|d'accord|s'il (?:te|vous) plaît|네|예|응|그래)"
)
"""A word that agrees to a proposal of the model."""
