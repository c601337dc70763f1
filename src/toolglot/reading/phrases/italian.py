"""Phrases of narrated stops and requests: Italian."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_INFINITIVE = (
    r"(?:leggere|rileggere|controllare|ricontrollare|verificare|esaminare|ispezionare|analizzare|esplorare|guardare"
    r"|vedere|dare (?:un'occhiata|uno sguardo)|cercare|ricercare|trovare|individuare|localizzare|rintracciare|aprire"
    r"|consultare|interrogare|eseguire|rieseguire|lanciare|rilanciare|avviare|riavviare|arrestare (?:il|la)|fermare"
    r" (?:il|la)|testare|provare|riprovare|compilare|ricompilare|costruire|distribuire|installare|reinstallare"
    r"|disinstallare|aggiornare|modificare|cambiare|correggere|sistemare|riparare|risolvere|adattare|regolare"
    r"|rifattorizzare|rinominare|sostituire|riscrivere|rimuovere|eliminare|cancellare|togliere|ripulire|pulire"
    r"|creare|aggiungere|inserire|scrivere|generare|implementare|applicare|configurare|impostare|attivare"
    r"|disattivare|abilitare|disabilitare|spegnere|accendere|abbassare|alzare|inviare|mandare|salvare|copiare"
    r"|spostare|unire|annullare (?:la|il|le|i)|ripristinare|collegare|connettere|navigare|visitare|indagare"
    r"|eseguire il debug|confrontare|contare|calcolare|estrarre|filtrare|convertire|tradurre (?:il|i|la) file"
    r"|programmare|prenotare|elencare|ottenere|recuperare|scaricare|caricare|ricaricare|validare|importare|esportare"
    r"|effettuare|procedere|tentare|raccogliere|ordinare|pubblicare|migrare|ottimizzare|formattare|stampare"
    r"|usare(?=.*(?:strumento|funzione|comando|ricerca|api|script|□| per ))|utilizzare(?=.*(?:strumento|funzione"
    r"|comando|ricerca|api|script|□| per ))|fare (?:questo|una (?:ricerca|copia|prova|richiesta)|la modifica"
    r"|le modifiche)|farlo|occuparmene|iniziare (?:a|con|da|dal|dalla)|cominciare (?:a|con|da|dal|dalla)|capire"
    r"|comprendere|studiare|identificare|isolare|mettere|integrare|preparare|completare (?:il|la))"
)
_CLITIC_INFINITIVE = (
    r"(?:legger|controllar|verificar|esaminar|analizzar|guardar|cercar|aprir|eseguir|avviar|riavviar|provar|installar"
    r"|aggiornar|modificar|cambiar|corregger|sistemar|risolver|rimuover|eliminar|crear|aggiunger|scriver|applicar"
    r"|salvar|copiar|spostar|scaricar|inviar|far)(?:lo|la|li|le)"
)
_PRESENT = (
    r"(?:leggo|rileggo|controllo|ricontrollo|verifico|esamino|ispeziono|analizzo|esploro|guardo|cerco|ricerco"
    r"|individuo|apro|consulto|interrogo|eseguo|rieseguo|lancio|rilancio|avvio|riavvio|fermo (?:il|la)|testo (?:il|la"
    r"|le|i)|provo (?:a|il|la|con|di nuovo)|riprovo|compilo|ricompilo|costruisco|distribuisco|installo|reinstallo"
    r"|aggiorno|modifico|cambio|correggo|sistemo|riparo|risolvo|adatto|regolo|rinomino|sostituisco|riscrivo|rimuovo"
    r"|elimino|cancello|tolgo|ripulisco|pulisco"
    r"|creo (?:il|lo|i|gli|la|le|un|una|uno|□)|aggiungo|inserisco|scrivo (?:il|la|lo|i|gli|le|un|una|□)|genero"
    r"|implemento|applico|configuro|imposto|attivo|disattivo|abilito|disabilito|spengo|accendo|abbasso|alzo|invio"
    r"|mando (?:il|la|un|una)|salvo (?:il|la|le|i)|copio|sposto|unisco|ripristino|collego|confronto|calcolo|estraggo"
    r"|filtro|converto|prenoto|elenco (?:i|il|le|la|gli)|ottengo|recupero|scarico|carico|ricarico|valido|importo"
    r"|esporto|effettuo|procedo (?:a|ad|con|alla|al|all')|do (?:un'occhiata|uno sguardo)|raccolgo|migro|ottimizzo"
    r"|inizio (?:a|con|da|dal|dalla|leggendo|controllando)|comincio (?:a|con|da|dal|dalla)|me ne occupo|integro)"
)
_NAMED = (
    r"(?<!lo )(?<!la )(?<!li )(?<!le )(?:controllo|lancio|avvio|riavvio|cambio|adatto|attivo|invio|ripristino"
    r"|confronto|calcolo|filtro|recupero|scarico"
    r"|carico|valido|importo|integro)(?! (?:il|lo|la|i|gli|le|un|una|uno|quest[oae]|quell[oae]|tutt[oie]|ora|subito"
    r"|anche"
    r"|se|che|come|cosa|di nuovo|□)(?!\w)| l')"
)
"""Words that are nouns or adjectives without an object behind them."""
_FUTURE = (
    r"(?:leggerò|controllerò|verificherò|esaminerò|ispezionerò|analizzerò|esplorerò|guarderò|cercherò(?! di (?:essere"
    r"|aiutar))|aprirò|consulterò|eseguirò|lancerò|avvierò|riavvierò|testerò|proverò (?:a|il|la|con)|compilerò"
    r"|installerò|aggiornerò|modificherò|cambierò|correggerò|sistemerò|risolverò|rinominerò|sostituirò|riscriverò"
    r"|rimuoverò|eliminerò|creerò|aggiungerò|inserirò|scriverò (?:il|la|lo|i|gli|le|un|una|□)|genererò|implementerò"
    r"|applicherò|configurerò|imposterò|attiverò|disattiverò|spegnerò|accenderò|invierò|salverò|copierò|sposterò"
    r"|confronterò|calcolerò|estrarrò|convertirò|prenoterò|elencherò|otterrò|recupererò|scaricherò|caricherò"
    r"|effettuerò|procederò|inizierò (?:a|con|da|dal|dalla)|comincerò (?:a|con|da|dal|dalla)|darò un'occhiata)"
)
_ADVERB = (
    r"(?:ora|adesso|subito|prima|innanzitutto|poi|quindi|anche|direttamente|rapidamente|velocemente|semplicemente"
    r"|allora|immediatamente|un attimo|un momento|solo|pure)"
)
_PRONOUN = r"(?:(?:lo|la|li|le|ne|ti|vi|te lo|ve lo|mi) )?"
PHRASES = Phrases(
    leads=(
        r"(?:ora|adesso|prima|prima di tutto|innanzitutto|anzitutto|per prima cosa|poi|quindi|allora|dopodiché"
        r"|successivamente|in seguito|ok|okay|bene|va bene|d'accordo|perfetto|capito|certo|ottimo|e|ma|infine|subito"
        r"|come prossimo passo|prossimo passo|per iniziare|per cominciare|a questo punto|un attimo|un momento"
        r"|io)(?:,? )"
    ),
    joins=r"quindi|così|perciò|pertanto|e|ma|allora|poi",
    announcing=(
        rf"(?:lo faccio (?:ora|adesso|subito|immediatamente)(?!\w)"
        r"|(?:lo|la|li|le) (?!spiego|dico|so|vedo|lascio|tengo|mostro|ricordo|riassumo)\w{3,}o (?:subito|ora"
        r"|adesso)(?!\w)"
        rf"|(?:fammi|mi lasci|lasciami|lasciatemi|permettimi di|mi permetta di|consentimi di) (?:{_ADVERB} ){{0,2}}"
        rf"(?:{_INFINITIVE}|{_CLITIC_INFINITIVE})(?!\w)"
        rf"|{_PRONOUN}(?:vado|andrò|sto per|devo|bisogna|dobbiamo|andiamo) (?:{_ADVERB} ){{0,2}}(?:ad? )?"
        rf"(?:{_ADVERB} ){{0,2}}(?:{_INFINITIVE}|{_CLITIC_INFINITIVE})(?!\w)"
        rf"|{_PRONOUN}(?:{_ADVERB} ){{0,2}}(?!{_NAMED})(?:{_PRESENT}|{_FUTURE})(?!\w)"
        r"|(?:vediamo|diamo un'occhiata|controlliamo|verifichiamo|cerchiamo (?!di)|apriamo|eseguiamo|proviamo"
        r"|guardiamo|leggiamo|esaminiamo|analizziamo|iniziamo (?:a|con|da|dal|dalla|leggendo)|cominciamo (?:a|con|da"
        r"|dal|dalla)|consultiamo|elenchiamo|esploriamo|aggiorniamo|correggiamo|installiamo|procediamo)(?!\w)"
        r"|sto (?:leggendo|controllando|verificando|cercando|aprendo|consultando|eseguendo|installando|aggiornando"
        r"|creando|analizzando|scaricando|avviando)\b(?=.*(?:\bora\b|\badesso\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\b(?:eu|às|não|você|se|salvo|quando|quando vuoi|una volta|non appena|appena|qualora|nel caso|in caso"
        r"|se necessario"
        r"|altrimenti|a meno|finché|fino a|dopo che|dopo (?:la tua|il tuo|la sua|il suo)|con il tuo|con il suo"
        r"|con la tua|dimmi|mi dica|inviami|mandami|invia|incolla|carica|condividi|conferma|confermami|indicami"
        r"|fammi sapere|per favore|supponiamo|immagina|immaginiamo|diciamo|poniamo"
        r"|dammi|dammel[oaie]|dimmel[oa]|mi dia|mostrami|passami|forniscimi|fornisci|scegli|rispondi|basta"
        r"|puoi|potresti|dovresti|devi|può|potrebbe|in futuro|d'ora in"
        r" poi|da ora in poi|domani|dice|scrive|ha scritto|risponde|stampa|c'è scritto|scritto|sarebbe|farei|vorrei"
        r"|ad esempio|per esempio|non|come)\b"
    ),
    behind=(
        r"\b(?:che (?:questo|questa|ciò|il|la|non)|come (?:va|procede)\w*|cosa posso|di solito|spesso|normalmente"
        r"|in genere|essere (?:chiaro|breve)|domani|(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)$"
        r"|alla fine|infine|dopo (?:la tua|il tuo|la sua|il suo|la conferma)|più tardi|in seguito|in futuro|sempre"
        r"|ogni (?:volta|commit|giorno|notte|settimana|mattina)|quando (?:vuoi|mi|lo|avrai|hai|sarà|confermi)"
        r"|se (?:vuoi|lo desideri|necessario|serve|mi|preferisci|ti|vuole|occorre)|non appena"
        r"|(?<!ancora )una volta(?! ancora)|un esempio"
        r"|esempi|spiegare|riassumere|chiarire|fino a quando|finché|la prossima volta|dopo che|le basi)\b"
        r"|^(?!.*\b(?:perché|se|cosa)\b.*\bnon\b).*\bnon\b"
    ),
    addressing=(
        r"\b(?:dimmi|fammi sapere|mi faccia sapere|inviami|mandami|per favore|conferma|confermami|vuoi|preferisci"
        r"|ti va|se vuoi|puoi (?:inviar|dir|confermar)\w*|potresti)\b"
    ),
    waiting=(
        r"(?:(?:solo )?un (?:attimo|momento|secondo|istante)(?:,? per favore)?|(?:per favore,? )?(?:attendi|attenda"
        r"|aspetta)(?: un (?:attimo|momento))?|dammi un (?:attimo|momento|secondo)"
        r"|(?:questo|così|ciò) (?:mi|ci|dovrebbe|permetterà|potrò|saprò)\b.+)"
    ),
    asking=(
        r"(?:(?:per favore|ora|adesso|poi|dopo|anche|prima|ok|bene|grazie|sì|ciao|e|allora|subito|solo"
        r"|perfetto)\b,? )"
        r"{0,4}(?:(?:mi )?(?:puoi|potresti|può|potrebbe) (?:anche |per favore )?|(?:voglio|vorrei|ho bisogno) "
        r"(?:che tu |di )?|aiutami ad? |bisogna |devi |dovresti )?"
        rf"(?:{_INFINITIVE}|{_CLITIC_INFINITIVE}|(?:leggi|controlla|verifica|verifichi|esamina|analizza|guarda|cerca"
        rf"|trova|apri|consulta|esegui|lancia|avvia|riavvia|testa|prova|compila|distribuisci|installa|aggiorna"
        rf"|modifica"
        rf"|cambia|correggi|correggilo|sistema|ripara|risolvi|rinomina|sostituisci|riscrivi|rimuovi|elimina|cancella"
        rf"|togli|pulisci|crea|aggiungi|inserisci|scrivi|genera|implementa|applica|configura|imposta|attiva|disattiva"
        rf"|abilita|disabilita|spegni|accendi|metti|invia|manda|salva|copia|sposta|unisci|confronta|calcola|estrai"
        rf"|converti|programma|prenota|elenca|scarica|carica|fai|fallo|continua|procedi|vai avanti|migra|ottimizza"
        rf"|rifattorizza|ordina|formatta))(?!\w)"
    ),
    declining=(
        r"\b(?:spiega|spiegami|spiegare|descrivi|riassumi|dimmi|perché|come (?:si|posso|funziona|faccio|mai)"
        r"|cosa (?:è"
        r"|fa|ne pensi|significa)|cos'è|qual|quale|quali|piano|proposta|non (?:cambiare|toccare|modificare|eseguire"
        r"|fare)|senza (?:cambiare|eseguire|toccare|modificare)|solo (?:spiega|dimmi|sapere)|opinione|poesia|racconto"
        r"|barzelletta|storia|differenza)\b"
    ),
    polite=r"\b(?:puoi|potresti|può|potrebbe)\b",
    forbidding=(
        r"\bnon (?:cambiare|toccare|modificare|eseguire|fare)\b|\bsenza (?:cambiare|eseguire|toccare|modificare)\b"
    ),
    agreeing=r"sì|si|certo|ok|okay|va bene|d'accordo|per favore",
)
