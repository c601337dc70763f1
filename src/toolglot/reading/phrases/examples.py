"""Phrases that introduce an example, or cast doubt on the call behind them, in languages besides English.

``EXAMPLE`` and ``HEADING`` only ever introduce an example: they name a format or say what a call looks like. The
phrases of ``DOUBT`` also precede calls that are meant, so a call behind one counts only at the end of the answer.
"""

from __future__ import annotations

_EXAMPLES = {
    "german": (
        r"(?:dieses|folgendes|diesem|folgendem|im folgenden) format|(?:diese|folgende|dieser|folgender) syntax"
        r"|(?:das format|die syntax) (?:\w+ ){1,6}(?:ist|lautet)(?: (?:folgendes|folgende|so|wie folgt))?"
        r"|(?:hat|haben) (?:diese|folgende) form"
        r"|(?:hier (?:ist|kommt)|(?:das|dies) ist) ein beispiel (?:für|eines|einer)"
        r" (?:\w+ ){0,3}\w*(?:aufruf|anfrage|antwort)e?s?"
    ),
    "spanish": (
        r"tienen? (?:este|esta|el siguiente|la siguiente) (?:aspecto|forma|formato|sintaxis|estructura)"
        r"|(?:el formato|la sintaxis) (?:\w+ ){1,6}es(?: (?:el siguiente|la siguiente|este|esta|así))?"
        r"|(?:us[oae]|usamos|utiliz[oa]|utilice|con|en|según) (?:este|el siguiente) formato"
        r"|así se (?:ve|ven|escribe|escriben) (?:\w+ ){0,4}\w+|se (?:ve|ven|escribe|escriben) así"
        r"|(?:aquí (?:hay|está|tienes|va)|este es) un ejemplo de"
        r" (?:\w+ ){0,2}(?:llamada|invocación|petición|respuesta)(?: \w+){0,4}"
    ),
    "portuguese": (
        r"tem (?:este|o seguinte|esta|a seguinte) (?:aspecto|formato|forma|sintaxe)"
        r"|(?:o formato|a sintaxe) (?:\w+ ){0,6}é(?: (?:o seguinte|a seguinte|este|esta|assim))?"
        r"|(?:aqui (?:está|vai)|eis|este é) um exemplo de (?:\w+ ){0,2}(?:chamada|requisição|resposta)(?: \w+){0,4}"
    ),
    "french": (
        r"(?:le format|la syntaxe) (?:\w+ ){1,6}est(?: (?:le suivant|la suivante|celui-ci|celle-ci))?"
        r"|(?:voici|voilà|ceci est) un exemple d(?:e |['’])(?:\w+ ){0,2}(?:appel|requête|réponse)(?: [\w'’]+){0,4}"
    ),
    "italian": (
        r"(?:il formato|la sintassi) (?:\w+ ){0,6}è(?: (?:il seguente|la seguente|questo|questa))?"
        r"|ha (?:questo|il seguente) (?:aspetto|formato)"
        r"|(?:ecco|questo è) un esempio di (?:\w+ ){0,2}(?:chiamata|richiesta|risposta)(?: \w+){0,4}"
    ),
    "russian": (
        r"выгляд(?:ит|ят) (?:примерно )?(?:так|следующим образом)|вот как выгляд(?:ит|ят) (?:\w+ ){0,3}\w+"
        r"|(?:такой|следующий|этот|таком|следующем|этом) (?:формат|синтаксис)е?"
        r"|(?:формат|синтаксис) (?:\w+ ){0,5}(?:такой|такая|следующий|следующая)"
        r"|(?:пишут|пишется|записывается|записываются)(?: так| следующим образом)?"
        r"|(?:вот|это|приведу|приведём) пример (?:\w+ ){0,2}(?:вызова|запроса|ответа)(?: \w+){0,4}"
    ),
    "chinese": (
        r"(?:这种|这个|以下|如下|下面的?)(?:格式|语法|写法)|(?:可以|应该|应当|需要|要)(?:这样|如此)(?:写|书写|表示)"
        r"|(?:格式|语法|写法)(?:就)?是?(?:这样|如此)的?|(?:调用|输出|结果)(?:是|看起来是)?(?:这样|如此)的"
    ),
    "japanese": (
        r"(?:形式|フォーマット|書式|構文|書き方)(?:は|の例は)(?:次|以下)の(?:とおり|通り|よう)(?:です|になります|である)?"
        r"|(?:この|次の|以下の)(?:形式|フォーマット|書式|構文)を(?:使(?:い|って(?:い)?)|使用し(?:てい)?|用い(?:てい)?)ます"
        r"|呼び出し(?:例)?は(?:次|以下)のように(?:なります|見えます|書かれます)"
    ),
}

_HEADINGS = {
    "english": (
        r"(?:examples?|samples?) (?:(?:of|for) )?(?:[^\W\d_]+ ){0,3}(?:responses?|outputs?|answers?|payloads?|json)"
    ),
    "german": r"beispiele? (?:für|einer?|des|der) (?:[^\W\d_]+ ){0,4}[^\W\d_]+",
    "spanish, portuguese": r"(?:ejemplos?|exemplos?) d[eoa] (?:[^\W\d_]+ ){0,4}[^\W\d_]+",
    "french": r"exemples? (?:de |d['’])(?:[^\W\d_]+ ){0,4}[^\W\d_]+",
    "russian": r"примеры? (?:[^\W\d_]+ ){0,4}[^\W\d_]+",
    "chinese, japanese": r"[^\W\d_我让请来私]{1,16}(?:示例|范例|の例|応答例|呼び出し例|出力例|使用例|調用例)",
}

_DOUBTS = {
    "german": (
        r"(?<!\w)(?:jemand|enthalten\Z|enthält\Z|vorlage\Z)"
        r"|(?<!\w)(?:(?:nicht|nie|niemals) (?:aus|auf|ge|\w+(?:en|t)\Z)|würden?|könntest|könnten?|hätten?|hatten?"
        r"|soll(?:te)? ich|(?:wenn|falls|sobald) (?:du|sie|ihr)\b|schrieb|schickte|steht|stand|lautete?|zitiert"
        r"|beispielsweise|zum beispiel|gewünscht|angefordert|folgend|so aus|(?:das|dem|ein|vom) modell"
        r"|(?:der|dem|ein) assistent)|(?<!\w)(?:ist|sind|war|waren|wie|etwa so|diese[mnrs]?(?: \w+)?"
        r"|\w*ausgabe|aufrufe?|verhalten|antwort)\Z"
        r"|\Aso \w+t (?!ich\b)|(?<!\w)(?:hier|das|dies) (?:ist|sind) d(?:as|ie) (?:format|syntax|schreibweise)"
        r"|(?<!\w)(?:beispiel\w*|bereits|vorher)(?!\w)"
        r"|(?<!\w)(?:zeigt|ergibt|liefert|gab|war|bekommt|sieht|schreibt|druckt|beginnt mit|endet mit)\Z"
    ),
    "spanish": (
        r"(?<!\w)(?:alguien|contener\Z|contiene\Z|incluir\Z|incluye\Z|plantilla\Z)"
        r"|(?<!\w)(?:no (?:(?:he|lo|la|se) )?(?:ejecut|llam|us|escrib|hag)|nunca|(?:ejecutar|llamar|usar|har|podr"
        r"|escribir|borrar|lanzar)ían?|había|si (?:estás|está|quieres|quiere|confirmas|confirma|te parece|le parece)"
        r"|por ejemplo|escribió|envió|escribí|envié|decía|aparece|solicitad|siguiente|(?:el|un) (?:modelo|asistente))"
        r"|(?<!\w)(?:es|son|era|eran|fue|como|dice|así|est[eoa]s?(?: \w+)?|llamadas?|respuesta"
        r"|salida(?: \w+)?)\Z|\Aasí \w|(?<!\w)(?:aquí (?:está|tienes)|est[ea] es) (?:el formato|la sintaxis)"
        r"|(?<!\w)(?:muestra|mostraba|devolvió|imprimió|recibe|emite|trae|ya (?:ejecuté|he)|atacante)(?!\w)"
    ),
    "portuguese": (
        r"(?<!\w)(?:não (?:execut|cham|us|escrev)|nunca|se (?:você|quiser|concordar|confirmar)|por exemplo|havia"
        r"|escrevi|escreveu|seguinte|(?:o|um) (?:modelo|assistente))"
        r"|(?<!\w)(?:é|são|era|foi|como|assim|est[ea]s?(?: \w+)?|isto|mostra|contém|diz|emite|imprime|recebe)\Z"
    ),
    "french": (
        r"(?<!\w)(?:n(?:e |['’])(?:\w+ ){0,2}(?:exécut|appel|lanc|écri)|jamais|si (?:vous|tu)\b|par exemple|j['’]avais"
        r"|avait|(?:pourr|appeller|exécuter|lancer)ai[st]|a écrit|a envoyé|suivant|(?:le|un) modèle|l['’]assistant)"
        r"|(?<!\w)(?:est|sont|était|comme|ceci|cela|ainsi|ce(?:tte|t)?(?: \w+)?)\Z"
        r"|(?<!\w)(?:(?:contient|contenait|montre|affiche|donne|écrit|reçoit|indique)\Z|déjà|attaquant)"
        r"|(?<!\w)(?:à quoi ressemble(?:nt)?|voici (?:le format|la syntaxe))(?!\w)"
    ),
    "italian": (
        r"(?<!\w)(?:non (?:\w+ )?(?:esegu|chiam|us|scriv)|mai\b|se (?:vuoi|sei|vuole|confermi)|per esempio|ad esempio"
        r"|avevo|aveva|ha scritto|seguente|(?:il|un) modello|l['’]assistente)"
        r"|(?<!\w)(?:è|sono|era|come|così|quest[oaie](?: \w+)?|mostra|contiene|dice|emette|stampa|riceve)\Z"
    ),
    "russian": (
        r"(?<!\w)(?:кто-то|содержать\Z|содержит\Z|шаблон\Z)"
        r"|(?<!\w)(?:не (?:выполн|запус|вызыв|вызвал|пиш|дела)|никогда|бы\b|если (?:вы|ты|хотите)|например|к примеру"
        r"|(?:написал|отправил|вывел|послал|вызвал|ответил)[аио]?\Z|говорится|написано|привед[её]н|следующ"
        r"|модел[ьи]\b|ассистент)|(?<!\w)(?:как|это|эт[оуаи]\w{0,3}|так|так(?:ой|ая|ое|ие))(?: \w+)?\Z"
        r"|(?<!\w)(?:вывод|вызов|ответ)\w{0,2}\Z|(?<!\w)вот (?:так|как)(?!\w)"
        r"|(?<!\w)(?:был[оаи]?|содерж\w+|приводит|показывает|выводит|пишет|получает|стоит)\Z|(?<!\w)ожида(?:ет|ют)(?!\w)"
        r"|\A\W*так выгляд(?:ит|ят)|(?<!\w)вот (?:формат|синтаксис)(?!\w)"
    ),
    "chinese": (
        r"如果|假如|有人|可能(?:会)?包含|中有|[你您](?:若|要是|确认|同意)|(?:当时|之前|刚才|上次|先前).{0,12}(?:写|调用|发送|输出|执行)的?|例如|比如|譬如"
        r"|(?:包含|写着|写道|记录|显示|引用)\Z|[是为]\Z|不要|切勿|(?:没有?|不会|不|别|未)(?:执行|运行|调用|写|发送)"
        r"|以下|下面|如下|这[样种]|这就是|模型|助手|要求的|(?:攻击者|用户|[你您])可以|(?:输出|调用|响应|回复)\Z"
        r"|(?:日志|文档|文件|页面|记录|代码|测试)(?:[里中上](?:有|是|写|出现)|显示|包含)"
    ),
    "japanese": (
        r"よろしければ|誰か|含まれ|含む|もし|たとえば|例えば|(?:実行|呼び出|書)[^、。]{0,6}(?:ない|ません)|以下|のよう|とおり|通り"
        r"|次の(?:出力|内容|文|行|形)|モデル|アシスタント|(?:書|含ま|表示さ|引用さ)(?:いて|れて)い(?:ます|ました)\Z"
        r"|(?:書き|送信し|出力し)ました\Z|こう(?:書|な|見)|(?:出力|呼び出し|応答)\Z"
        r"|(?:ログ|文書|ドキュメント|ファイル|ページ|記録|テスト)に[はも]"
    ),
    "korean": (
        r"(?:문서|로그|파일|기록|페이지)에[는도]"
        r"|예를 들어|원하시면|동의하시면|(?:작성|호출|전송)했습니다\Z|다음과 같|이런|모델"
    ),
}
"""Conditions, conditionals, refusals, the past, words that point at what follows, and the model as a third party."""

_UNSPACED = ("chinese", "japanese")
EXAMPLE = "|".join(_EXAMPLES[language] for language in _EXAMPLES if language not in _UNSPACED)
EXAMPLE_CJK = "|".join(_EXAMPLES[language] for language in _UNSPACED)
HEADING = "|".join(_HEADINGS.values())
DOUBT = "|".join(_DOUBTS.values())
