"""Phrases of narrated stops and requests: German."""

from __future__ import annotations

from toolglot.reading.phrases.record import TECHNICAL, Phrases

_INFINITIVE = (
    r"(?:lesen|drosseln|regeln|dimmen|stummschalten|abschalten|anschalten|umschalten|hochfahren|herunterfahren"
    r"|schließen|abgleichen|validieren|teilen|anhängen|verschicken|einladen|eingrenzen|erweitern|verfeinern"
    r"|übersetzen|markieren|einordnen|archivieren|weiterleiten|beantworten|klonen|synchronisieren|komprimieren"
    r"|entpacken|neu berechnen|wiederherstellen|vorbereiten|vervollständigen|sperren|entsperren|bewerten"
    r"|identifizieren|eingrenzen|nachverfolgen|importieren|exportieren|verbinden|einbinden|integrieren|entfernen"
    r"|lokalisieren|scannen|erneuern|wiederholen|durchgehen|verstehen|sammeln|sortieren|gruppieren|umstellen"
    r"|einstellen|einloggen|anmelden|abschicken|veröffentlichen|optimieren|migrieren|sichern|wiederherstellen"
    r"|zusammenstellen|einlesen|prüfen|überprüfen|nachprüfen|ansehen|anschauen|nachsehen|nachschauen|untersuchen"
    r"|durchsehen|öffnen|suchen|durchsuchen|finden|heraussuchen|abfragen|ausführen|starten|neu starten|testen|bauen"
    r"|kompilieren|installieren|nachinstallieren|aktualisieren|ändern|bearbeiten|anpassen|korrigieren|beheben"
    r"|reparieren|umbenennen|ersetzen|umschreiben|entfernen|löschen|aufräumen|leeren|erstellen|anlegen|hinzufügen"
    r"|ergänzen|einfügen|schreiben|erzeugen|generieren|implementieren|umsetzen|anwenden|konfigurieren|einrichten"
    r"|aktivieren|deaktivieren|ausschalten|einschalten|abspielen|senden|schicken|versenden|speichern|kopieren"
    r"|verschieben|zusammenführen|zurücksetzen|verbinden|aufrufen|abrufen|recherchieren|erkunden|analysieren"
    r"|debuggen|vergleichen|zählen|berechnen|auslesen|extrahieren|filtern|umwandeln|konvertieren|buchen|eintragen"
    r"|auflisten|holen|herunterladen|hochladen|laden|versuchen|probieren|ausprobieren|verwenden|nutzen|ermitteln"
    r"|herausfinden|beginnen|anfangen|fortfahren|vornehmen|durchführen|verschaffen|laufen lassen|werfen|machen)"
)
_PRESENT = (
    r"(?:lade (?:die|den|das|alle)|dimme|verschicke|erweitere|verfeinere|übersetze|markiere|archiviere"
    r"|beantworte die|klone|synchronisiere|komprimiere|entpacke|identifiziere|importiere|exportiere|integriere"
    r"|scanne|sammle|sortiere|gruppiere|optimiere|migriere|erneuere|wiederhole|veröffentliche|lokalisiere|sperre"
    r"|entsperre|drehe|stoppe|beende den|räume|lese|prüfe|überprüfe|untersuche|öffne|suche(?! noch)|durchsuche"
    r"|starte|teste|baue|kompiliere|installiere|aktualisiere|ändere|bearbeite|korrigiere|behebe|repariere|ersetze"
    r"|entferne|lösche|leere|erstelle|ergänze|schreibe|erzeuge|generiere|implementiere|konfiguriere|aktiviere"
    r"|deaktiviere|sende|schicke|speichere|kopiere|verschiebe|verbinde|recherchiere|erkunde|analysiere|vergleiche"
    r"|zähle|berechne|extrahiere|filtere|konvertiere|buche|liste|hole|versuche|probiere|ermittle|beginne|verschaffe"
    r"|werfe einen|mache mich|sehe (?:mir|nach|kurz|jetzt|zuerst|nun|das|die|den))"
)
_SPLIT = (
    r"(?:schließe|wandle|schlage|räume|rolle|hebe|pushe|checke|werte|gleiche|nehme|binde|schreibe|frage|führe"
    r"|passe|benenne|lege|füge|wende|richte|schalte|spiele|setze|rufe|trage|nehme"
    r"|fahre|lasse|schaue|schau|gucke|sehe|stelle|gehe|fange|lade|lese|logge|melde|probiere|drehe|mache)"
)
"""Verbs that need their second part, which ends the clause."""
_PARTICLE = (
    r"(?:stumm|leiser|lauter|her|zu|los|frei|weg|ab|an|auf|aus|durch|ein|fort|heraus|herunter|hinzu|hoch|nach|neu"
    r"|um|vor|weiter|zurück|zusammen|herab|runter|laufen|ausführen)"
)
_SAYING = (
    r"(?:erkläre|erläutere|fasse|zeige|sage|denke|glaube|meine|weiß|verstehe|kenne|habe|bin|werde|kann|möchte|will"
    r"|warte|bleibe|höre|beende|mache|nenne|beschreibe|antworte|frage|hoffe|sehe|merke|erinnere|lasse|gebe|nehme"
    r"|gehe|komme|freue|danke|behalte|beantworte|bitte|brauche|benötige|rate|empfehle|schlage|wünsche|halte|finde"
    r"|stelle|behandle|verwende|nutze|arbeite|überlege|würde|könnte|hätte|wäre|liebe|mag|lerne|schließe|fühle"
    r"|rechne|zähle|vermute|gehe|bevorzuge|stimme|akzeptiere|verzichte|erwarte|melde|verlasse|hätte|belasse|überlasse"
    r"|vertraue|überspringe|ignoriere|lehne|verweigere|weigere|schätze|begrüße|bedau?e?re|entschuldige|unterstütze"
    r"|helfe|begleite|informiere|benachrichtige|erhalte|bekomme|besitze|verfüge|verweise|zitiere|vermeide|verdanke"
    r"|interpretiere|betrachte|befürchte|bezweifle|beziehe|orientiere|konzentriere|beschränke|unterscheide|setze"
    r"|biete|gratuliere|verspreche|garantiere|versichere|bestätige|betone|lebe|heiße|stamme|diene|sehe|muss|soll"
    r"|darf|dürfte|sollte|müsste|wollte|musste|konnte|hatte|machte|dachte|lege dir|warne|weise|rede|spreche|liefere"
    r"|gebe|zeige|bringe|erinnere|skizziere|schildere|wüsste|möge|nenne|fasse|bevorzuge|ziehe|rate|trete|folge"
    r"|vermisse|teile|hänge dir|verdächtige|beherrsche|grüße|lobe|empfange|hasse|genieße|vergesse|verliere"
    r"|scheitere|bewahre|schütze|befolge"
    r"|beachte|berücksichtige|pflege|meide|ermutige|beglückwünsche|stehe|hafte|erkenne|bewerte|achte|überwache"
    r"|beobachte|bemerke|begreife"
    r"|beurteile|entnehme|entdecke|erhoffe|wecke|passe auf|drücke|fiebere|wette|stimme|garantiere|sorge mich|staune"
    r"|unterstelle|mutmaße|tippe|behaupte|bezeichne|definiere|bitte|flehe|schwöre|gestehe|gebe zu|leide|lache|weine"
    r"|spare|bewundere|respektiere|toleriere|verlange|fordere|benötige|bedarf|enthalte|verbleibe|verstehe|kapiere"
    r"|besitze|repräsentiere|verkörpere|verantworte|verwalte|betreue|programmiere|entwickle gern|kenne|bediene|lehre)"
)
"""Verbs of saying, thinking and being: no actions, also where any other verb is one."""
_THING = (
    r"(?:\w*dateien|\w*datei|\w*tests?|\w*logs?|\w*protokolle?|\w*code|\w*ordner|\w*verzeichnis(?:se)?|\w*server"
    r"|\w*datenbank(?:en)?|\w*tabellen?|\w*funktion(?:en)?|\w*klassen?|\w*module?|\w*pakete?|\w*abhängigkeit(?:en)?"
    r"|\w*konfiguration|\w*einstellungen?|\w*zweig|\w*seiten?|\w*anfragen?|\w*abfragen?|\w*fehler|\w*befehle?"
    r"|\w*variablen?|\w*routen?|\w*pfade?|\w*dokumentation|\w*kalender|\w*rechnung(?:en)?|\w*bestellung(?:en)?"
    r"|\w*konto|\w*daten|\w*bild(?:er)?|\w*container|\w*ports?|\w*prozesse?|\w*version(?:en)?|\w*zeilen?|\w*projekt"
    rf"|\w*repository|\w*migration|\w*rechte|\w*berechtigungen|\w*änderung(?:en)?|\w*abschnitte?|\w*teile?"
    rf"|\w*annahme|\w*vorhersage|\w*antwort(?:en)?|\w*ausgaben?|\w*ergebnis(?:se)?|\w*zähler|\w*dienste?"
    rf"|\w*system|\w*schlüssel|\w*spalten?|\w*knopf|\w*formular|\w*licht(?:er)?|\w*blatt|\w*berichte?|\w*termine?"
    rf"|\w*flüge?|\w*werkzeug|\w*skripte?|{TECHNICAL})(?!\w)"
)
"""Things that tools work on: a verb with one of them is an action, unless it is a verb of saying."""
_SOON = r"[^,;:]{0,80}?(?<!\w)"
PHRASES = Phrases(
    leads=(
        r"(?:jetzt|nun|zuerst|zunächst|dann|danach|anschließend|als nächstes|als erstes|im nächsten schritt"
        r"|zum abschluss|zum schluss|so|auch|nebenbei|okay|ok"
        r"|gut|alles klar|verstanden|moment|und|aber|also|deshalb|daher|abschließend|noch|außerdem"
        r"|schritt \d+)(?:,? )"
    ),
    joins=(
        r"(?:den|die|das|diesen?|dieses) \S+|also|deshalb|daher|darum|und|aber|dann|jetzt|nun|danach|anschließend"
        r"|zuerst|zunächst|noch"
    ),
    announcing=(
        rf"(?:(?:gib|geben sie|gebt) mir (?:eine?n?) (?:\w+ )?(?:sekunde|moment|minute|augenblick),? (?:um|damit ich) "
        rf"|ich (?!{_SAYING}\b)\w{{3,}}e\b(?={_SOON}{_THING})|(?!{_SAYING}\b)\w{{3,}}e ich\b(?={_SOON}{_THING})"
        rf"|(?:ich (?:nehme|verwende|nutze)|nehme ich) (?:stattdessen|dafür|dazu|jetzt|nun) |ich gebe (?:mal"
        rf"|jetzt|nun|kurz) [^,;:]{{1,40}} aus$"
        rf"|ich mache (?:jetzt |nun |erst |noch )?(?:eine?n?) (?:\w+ )?(?:screenshot|backup|sicherung|kopie"
        rf"|commit|test|snapshot|abfrage)"
        rf"|(?:das|dies|genau das) (?:mache|tue|erledige) ich (?:jetzt|nun|gleich|sofort)"
        rf"|gehen wir [^,;:]{{1,50}} durch\b"
        rf"|ich setze (?=[^,;:]{{0,60}}(?:auf|zurück|um|ein)\b)(?={_SOON}(?:{_THING}|\w*limit))|ich (?:räume"
        rf"|pushe|pulle|merge|deploye|committe) (?:jetzt |noch |nun )?(?:die|den|das|□)"
        rf"|(?:den|die|das) \w+e ich (?:jetzt|nun|gleich) |ich schlage (?:das |es |kurz |mal )?nach\b"
        rf"|ich mache [^,;:]{{1,40}} rückgängig|(?:bauen|fügen|nehmen|richten|setzen"
        rf"|schalten) wir [^,;:]{{1,50}} (?:ein|hinzu|um|aus)(?!\w)"
        rf"|lassen wir (?:das|es|den|die) [^,;:]{{0,40}}?laufen|ich mache (?:jetzt |nun "
        rf"|gleich )?mit [^,;:]{{1,50}} weiter"
        rf"|(?:also |deshalb |daher |dann )?(?:scrolle|klicke|tippe|navigiere|wechsle|springe|erhöhe|verringere"
        rf"|senke|setze) ich\b"
        rf"|ich (?:scrolle|klicke|navigiere|wechsle|erhöhe|verringere|senke|hebe|kümmere mich (?:jetzt|nun|gleich"
        rf"|sofort|zuerst)) "
        rf"|ich (?:verwende|nutze) (?={_SOON}(?:\w*werkzeug|tool|suche|befehl|skript|□))"
        rf"|(?:jetzt|nun|als nächstes|zuerst|zunächst) (?!haben|sind|können|wissen|müssen|sehen|werden|sollten"
        rf"|brauchen)"
        rf"\w{{3,}}en wir\b(?={_SOON}{_THING})|wir (?!haben|sind|können|wissen|sehen|brauchen|sollten|müssen|könnten)"
        rf"\w{{3,}}en (?={_SOON}{_THING})(?=.*\b(?:jetzt|nun|zuerst|zunächst)\b)"
        rf"|(?:dann |jetzt |nun )?wollen wir (?:doch )?(?:mal|einmal|zuerst|nun"
        rf"|jetzt) [^,:;]{{0,80}}?\b{_INFINITIVE}(?!\w)"
        rf"|ich muss [^,:;]{{0,60}}?\b(?:sehen|kennen|{_INFINITIVE[3:-1]})(?=, bevor ich| bevor ich)"
        rf"|ich (?:mache|erledige|tue) (?:das|es|dies) (?:jetzt|sofort)(?!\w)"
        rf"|ich (?!{_SAYING}\b)\w{{3,}}e (?:jetzt|nun|gleich|sofort) "
        rf"|(?:jetzt|nun|als nächstes|zuerst|zunächst) (?!{_SAYING}\b)\w{{3,}}e ich(?!\w)"
        rf"|ich muss (?:\w+ ){{0,3}}?(?:zuerst|erst|zunächst|jetzt|nun|noch) [^,:;]{{0,100}}?\b{_INFINITIVE}(?!\w)"
        rf"|(?:zuerst|zunächst|jetzt|nun|als nächstes) muss ich [^,:;]{{0,100}}?\b{_INFINITIVE}(?!\w)"
        rf"|lass(?:en sie)? mich [^,:;]{{0,60}}?\b(?:bestätigen|ausgeben|laden|umwandeln|abgleichen|nachmessen"
        rf"|einsehen)(?!\w)"
        rf"|(?:ich werde|werde ich|wir werden|werden wir) [^,:;]{{0,120}}?\b{_INFINITIVE}(?!\w)"
        rf"|(?:lass|lassen sie|lasst) (?:mich|uns) [^,:;]{{0,120}}?\b{_INFINITIVE}(?!\w)|ich {_PRESENT}(?!\w)"
        rf"|{_PRESENT} ich(?!\w)"
        rf"|(?:ich {_SPLIT}|{_SPLIT} ich)\b(?=[^,:;]* {_PARTICLE}(?!\w))"
        r"|(?:schauen|sehen) wir (?:uns|mal|nach|zuerst|zunächst)(?!\w)|(?:prüfen|öffnen|lesen|starten|suchen"
        r"|testen|beginnen|untersuchen|überprüfen) wir (?:jetzt|nun|zuerst|zunächst|mal|mit|erst|einmal|die|das"
        r"|den)(?!\w))"
    ),
    before=(
        r"\w,? (?:dann|und)(?: dann)? $|\b(?:jede[nrs]? (?:nacht|tag|woche|monat|stunde|morgen|abend)"
        r"|nach de[mr] (?!lesen|prüfen)\w+|nächste[nsr]? mal|meistens|meist|normalerweise|üblicherweise"
        r"|gewöhnlich|immer|nie|niemals|selten|in der regel|manchmal"
        r"|in diesem schritt|für jede[nrs]?|bei jede[mr]|wenn|falls|sobald|bei bedarf|sofern|solange"
        r"|nach (?:deiner|ihrer|der freigabe|eurer)|mit (?:deiner"
        r"|ihrer) (?:erlaubnis|zustimmung)|(?<!moment )bitte(?! warten| einen)|sag|sagen sie|schick|schicke mir"
        r"|schicken sie|nenn|nennen sie|gib|geben sie|teile|teilen sie|bestätige|bestätigen sie|lade|laden sie"
        r"|sende|antworte|angenommen|stell dir|du (?:kannst|solltest|musst)|sie (?:können|sollten|müssen)|würde"
        r"|könnte|in zukunft|künftig|zukünftig|ab jetzt|ab sofort|von nun an|morgen|später|schreibt|sagt"
        r"|zum beispiel|beispielsweise|gerne?|bevor (?:du|sie|ihr)|so gehe ich vor|ohne einw[aä]nde|ansonsten"
        r"|sonst|wähle?|wählen sie|zeige? mir|zeigen sie|melde dich|melden sie|stell mir|es reicht)\b"
    ),
    behind=(
        r"\b(?:dass|daraus|oft|meist|meistens|normalerweise|üblicherweise|jeden morgen|wie es läuft|meine meinung"
        r"|(?<!für )(?<!von )am (?:mon|diens|donners|frei|sams|sonn)tag|am mittwoch|schließlich|zuletzt"
        r"|am ende|niemals|selten|solange|ausschließlich|^ich gehe von|in der regel|(?:deine|ihre"
        r"|eure)[rn]? (?:meinung|ansicht|sicht)|^ich \w+e (?:sie|dich|euch) |mit dir|mit ihnen|ohne rückfrage"
        r"|code in|insgesamt|dir die|ihnen die|nach (?:deiner|ihrer|eurer)|grundlagen|grundsätzlich|morgen|später"
        r"|nachher|in zukunft|künftig"
        r"|zukünftig|immer|stets|jedes mal|vor jedem|nach jedem|jede[nrs]? (?:tag|nacht|woche|commit)|wenn|falls"
        r"|sobald|sofern|bei bedarf|gerne?|beispiel|beispiele|erklären|erläutern|zusammenfassen"
        r"|wissen|mich (?:morgen|wieder)|nächste[ns]? (?:mal|woche)|bis (?:du|sie)|nachdem (?:du|sie)|auf deine"
        r"|auf ihre|davon aus|bereits|schon seit)\b"
        r"|^(?!.*\b(?:warum|wieso|weshalb|ob)\b.*\b(?:nicht|kein)).*\b(?:nicht|kein\w*|nie)\b"
    ),
    addressing=(
        r"\b(?:sag (?:mir|es|bescheid)|bitte|schick mir|teile? mir|nenn mir|bestätige|möchtest du|willst du"
        r"|soll ich|kannst du|können sie|wenn du (?:willst|möchtest)|gib mir|melde dich)\b"
    ),
    waiting=(
        r"(?:(?:einen |kleinen )?(?:moment|augenblick)(?: bitte)?|bitte (?:warten|einen moment(?: geduld)?)|(?:das"
        r"|dies) (?:kann|wird) (?:einen|kurz|etwas) .{0,30}dauern|(?:das|dies|so) (?:sollte|zeigt|hilft|verrät"
        r"|sehe ich|sehen wir)\b.+)"
    ),
    asking=(
        r"(?:(?:bitte|jetzt|nun|dann|danach|auch|zuerst|ok|okay|gut|danke|ja|hallo|hi|und|also|super"
        r"|mal)\b,? ){0,4}(?:(?:kannst|könntest|würdest|können|könnten|würden) (?:du"
        r"|sie) .{0,120}?\b(?:" + _INFINITIVE[3:] + r"(?!\w)|(?:ich (?:möchte|will), dass du|du sollst|hilf mir)\b"
        r"|(?:lies|prüfe?|überprüfe?|öffne|suche?|such mir|durchsuche|führe?|starte|teste|baue?|kompiliere"
        r"|installiere|aktualisiere|ändere?|bearbeite|passe?|korrigiere|behebe?|repariere|benenne|ersetze|entferne"
        r"|lösche?|leere|erstelle?|lege?|füge?|ergänze|schreibe?|erzeuge|generiere|implementiere|wende|konfiguriere"
        r"|richte|aktiviere|deaktiviere|schalte?|mach(?:e|s)?|spiele?|sende|schicke?|speichere?|kopiere|verschiebe"
        r"|stelle?(?! dir)|setze?|rufe?|recherchiere|analysiere|vergleiche|zähle?|berechne|extrahiere|konvertiere"
        r"|buche?|trage?"
        r"|liste|hole?|lade|sieh|schaue?|weiter|fahre? fort|leg los|prüfen sie|öffnen sie|starten sie|führen sie"
        r"|erstellen sie|löschen sie|ändern sie|schalten sie|senden sie|aktualisieren sie|korrigieren sie"
        r"|beheben sie|installieren sie|(?!welche|diese|jede|eine|alle|keine|meine|deine|beide|viele|erkläre"
        r"|beschreibe|sage|nenne|zeige|habe|hätte|wäre|würde|gebe)\w{3,}e(?= (?:die|den|das|eine?n?|überall"
        r"|alle) )|optimiere|migriere|sortiere|reserviere?|\w{3,}ier (?:ihn|sie|es|den|die|das|bitte|mal)|räum"
        r"|finde?|ermittle|untersuche?|diagnostiziere|löse?|beseitige?|erweitere?"
        r"|verbessere?|kümmere? dich|sorge? dafür|stelle? sicher|binde|integriere|bringe?|nimm|gehe?|probiere?"
        r"|versuche?"
        r"|(?!können|haben|wissen|sind|denken|meinen|kennen|sehen|glauben|sagen|erklären|würden|möchten|wollen"
        r"|sollten|nennen"
        r"|beschreiben|erläutern|geben|werden|finden sie,|wären|hätten)\w{3,}en sie)(?!\w))"
    ),
    declining=(
        r"\b(?:erkläre?|erklären|beschreibe?|fass\w* .{0,40}zusammen|(?:schreib|verfass|formulier"
        r"|entwirf)\w* (?:mir |uns )?(?:eine?n?|die|den) (?:\w+ )?(?:e-?mail|mail|nachricht|brief|antwort|tweet"
        r"|text|notiz)\b|sag mir|(?:schreib|zeig|nenn)\w* (?:mir |uns |auf )*"
        r"(?:warum|wieso|wie|was|welche\w*)|plan|vorschlag|konzept|ändere? (?:noch )?nichts|nichts (?:ändern|ausführen)"
        r"|ohne (?:etwas )?zu (?:ändern|starten)|ohne (?:änderung|ausführung)|nur (?:erklären|wissen)|meinung"
        r"|gedicht|geschichte|witz|unterschied)\b"
    ),
    questioning=r"\b(?:warum|wieso|weshalb|woran|wo|wie|was|welche[rsnm]?|wer|wann)\b",
    polite=r"\b(?:kannst|könntest|würdest|können|könnten|würden) (?:du|sie)\b",
    forbidding=r"\b(?:ändere|mach|führe)\w* (?:bitte )?(?:noch )?nichts\b|\bohne (?:etwas )?zu (?:ändern|starten)\b",
    agreeing=r"ja|gerne|klar|bitte|okay",
)
