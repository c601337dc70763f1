"""Phrases of narrated stops and requests: French."""

from __future__ import annotations

from toolglot.reading.phrases.record import TECHNICAL, Phrases

_INFINITIVE = (
    r"(?:lire|couper|fermer|partager|joindre|formater|augmenter|diminuer|réduire|élargir|affiner|restreindre"
    r"|inviter|demander à la base|traduire|transcrire|étiqueter|classer|archiver|répondre au|transférer|cloner"
    r"|synchroniser|compresser|décompresser|redimensionner|recalculer|refaire|préparer|compléter|verrouiller"
    r"|déverrouiller|évaluer|identifier|isoler|tracer|arrêter le|baisser|monter|programmer|brancher|intégrer"
    r"|connecter|raccorder|relier|rétablir|réinitialiser|renouveler|répéter|étudier|comprendre|régler|relire"
    r"|rassembler|collecter|trier|grouper|publier|optimiser|migrer|restaurer|soumettre|afficher|imprimer|vérifier"
    r"|examiner|inspecter|voir|regarder|jeter un (?:\w+ )?(?:œil|oeil|coup d'œil|coup d'oeil)|consulter|chercher"
    r"|rechercher|trouver|localiser|ouvrir|interroger|exécuter|lancer|relancer|tester|compiler|construire|déployer"
    r"|démarrer|redémarrer|installer|désinstaller|réinstaller|mettre (?:à jour|en place|en œuvre)|actualiser"
    r"|modifier|éditer|changer|corriger|réparer|ajuster|adapter|refactoriser|renommer|remplacer|réécrire|supprimer"
    r"|effacer|retirer|nettoyer|créer|ajouter|insérer|écrire|rédiger|générer|implémenter|appliquer|configurer"
    r"|activer|désactiver|éteindre|allumer|envoyer|enregistrer|sauvegarder|copier|déplacer|fusionner|annuler la"
    r"|connecter|naviguer|explorer|enquêter|analyser|déboguer|comparer|compter|calculer|extraire|filtrer|convertir"
    r"|planifier|réserver|lister|obtenir|récupérer|télécharger|essayer|réessayer|utiliser(?=.*(?:outil|fonction"
    r"|commande|recherche|api|script|□| pour ))|procéder|valider|importer|exporter|faire (?:cela|ça|(?:une"
    r"|la) (?:recherche|requête|sauvegarde|copie|modification|mise à jour|correction)|les (?:modifications"
    r"|changements|corrections|tests))|effectuer|revérifier|retester|rouvrir|parcourir|tenter|commencer (?:par|à|avec))"
)
_PRESENT = (
    r"(?:lis|coupe|ferme|partage|formate|augmente|diminue|réduis|implémente|élargis|affine|traduis|prépare|complète"
    r"|verrouille|programme (?:le|la|un|une)|réserve|liste les|convertis|filtre|identifie|localise|nettoie|remets"
    r"|retire|réécris|branche|interroge|intègre|connecte|restaure|publie|trie|rassemble|parcours|étudie|inspecte"
    r"|déplace|arrête le|règle|renouvelle|relis|vérifie|examine|regarde|consulte|cherche|recherche|ouvre|exécute"
    r"|lance|relance|teste|compile|déploie|démarre|redémarre|installe|mets (?:à jour|en place)|modifie|change"
    r"|corrige|répare|ajuste|adapte|renomme|remplace|supprime|efface|nettoie|crée|ajoute|écris|rédige|génère"
    r"|applique|configure|active|désactive|éteins|allume|envoie|enregistre|copie|déplace|explore|analyse|compare"
    r"|compte les|calcule|extrais|récupère|télécharge|essaie|réessaie|utilise l'outil|procède|effectue"
    r"|m'occupe (?:de|maintenant|tout)|commence (?:par|à)|jette un)"
)
_ADVERB = (
    r"(?:maintenant|d'abord|tout d'abord|donc|aussi|également|ensuite|alors|immédiatement|tout de suite|à présent"
    r"|rapidement|simplement|directement|commencer par|procéder à|y|en|le|la|les|essayer de|puis|vite|désormais)"
)
_SAYING = (
    r"(?:explique|résume|précise|montre|dis|pense|crois|suis|ai|sais|comprends|vois|connais|peux|veux|dois|vais"
    r"|attends|reste|arrête|décris|réponds|espère|note|rappelle|laisse|donne|prends|remercie|garde|trouve|suppose"
    r"|considère|préfère|souhaite|propose|suggère|recommande|conseille|présente|détaille|termine|conclus|passe"
    r"|reviens|ajoute|aime|refuse|accepte|tiens|utilise|travaille|parle|cite|compte)"
)
"""Verbs of saying, thinking and being: no actions, also where any other verb is one."""
_SAYING_STEM = (
    r"(?:expli|résum|précis|montr|dir|dis|pens|croi|croy|ser|êtr|sau|savoir|compre|connaî|pou|vou|dev|attend|rest"
    r"|arrêt|décri|répond|espér|not|rappel|laiss|donn|prend|pren|remerci|gard|trouv|suppos|consid|préf|souhait|propos"
    r"|suggér|recommand|conseill|présent|détail|termin|concl|rev[ei]|aim|refus|accept|ten|tien|utilis|travaill|parl"
    r"|cit|au(?=ra)|avoir|évit|ignor|omett|aver|inform|notifi|aid|nomm|mentionn|soulign|illustr|partag|accompagn"
    r"|offr|suiv|rejet|limit|trait|interprét|appel|défin|confi|attach|conserv|maint|respect|permet|faudr|fau|abstien"
    r"|imagin|rép[eé]|retien|reten|racont|content|réjou|regrett|excus|pass|all|récap|transfèr|transmet|invit|avou|surveill|veill|observ|encourag|vot|pari|engag|garant|assur|promet|reconn|chois|opt|bas"
    r"|concentr|restrei|réveill|félicit|dout|signal|publi(?=erons)|mesur|évalu(?=e que)|estim|jug|constat|remarqu|aperç|devin|soupçon|maîtris|possèd|reçoi|recev|représent|confirm|affirm|déconseill|détest|ador|suspect"
    r"|salu|approuv|appréci|admir|crain|stock|conserv|apprend|progress|compren|respect|sommes|avons|pouvons|devons|voulons)"
)
_THING = (
    r"(?:fichiers?|journa(?:l|ux)|code|dossiers?|répertoires?|serveurs?|bases?(?: de données)?|tables?|fonctions?"
    r"|classes?|modules?|paquets?|dépendances?|configurations?|paramètres?|branches?|pages?|requêtes?|erreurs?"
    r"|bogues?|commandes?|variables?|routes?|chemins?|documentation|courriels?|calendrier|agenda|factures?|comptes?"
    r"|données|images?|conteneurs?|ports?|processus|versions?|lignes?|projet|dépôts?|migrations?|permissions?|droits"
    rf"|réservation|sections?|parties?|hypothèses?|prévisions?|réponses?|sorties?|résultats?|compteurs?|outils?|terminal|navigateur|boutons?|formulaires?|lumières?|feuilles?|rapports?|réunions?|vols?|services?|système|clés?|colonnes?|indentation|traces?|modifications?|corrections?|correctifs?|{TECHNICAL})(?!\w)"
)
"""Things that tools work on: a verb with one of them is an action, unless it is a verb of saying."""
_SOON = r"[^,;:]{0,80}?(?<!\w)"
PHRASES = Phrases(
    leads=(
        r"(?:maintenant|d'abord|tout d'abord|ensuite|puis|alors|bon|bien|très bien|d'accord|ok|parfait|compris|et"
        r"|mais|donc|enfin|à présent|pour commencer|un instant|première étape|étape suivante|voyons)(?:,? )"
    ),
    joins=r"donc|alors|et|mais|puis|c'est pourquoi",
    announcing=(
        rf"(?:(?:donnez-moi|donne-moi|laissez-moi|laisse-moi) (?:une (?:seconde|minute)|un (?:instant|moment)) (?:pour"
        rf"|le temps de|que je) \w+"
        rf"|(?:je vais|nous allons|on va) (?:{_ADVERB} ){{0,2}}(?:l'|les |le |la )?(?!{_SAYING_STEM})\w{{3,}}(?:er|ir|re)"
        rf"\b(?={_SOON}{_THING})"
        rf"|(?:laissez-moi|laisse-moi|permettez-moi d(?:e |')|permets-moi d(?:e |')) ?(?:{_ADVERB} )?(?:l'|les |le |la )?"
        rf"(?!{_SAYING_STEM})\w{{3,}}(?:er|ir|re)\b(?={_SOON}{_THING})"
        rf"|(?:je |j')(?:l'|les |le |la )?(?!{_SAYING_STEM})\w{{3,}}rai\b(?={_SOON}{_THING})"
        rf"|(?!{_SAYING_STEM})\w{{3,}}ons (?:maintenant|d'abord|ensuite|à présent|tout de suite"
        rf"|(?=(?:l[ea]s?|l'|une?|□|ce|cette|ces)(?!\w)))(?={_SOON}{_THING})"
        rf"|je (?!{_SAYING}\b|{_SAYING_STEM})\w{{3,}}(?:e|[^a]is|ds|ts) (?:maintenant |donc |d'abord |aussi |ensuite )?"
        rf"(?=(?:l[ea]s?|l'|une?|□|ce|cette|ces|mon|ma|deux|votre|vos|ton|tes)(?!\w))(?={_SOON}{_THING})"
        rf"|je (?:prends|fais) (?:d'abord |maintenant )?une? (?:\w+ )?(?:capture|sauvegarde|copie|recherche|requête|essai)"
        rf"|je passe (?:maintenant )?(?:au|à la|à l'|aux) (?={_SOON}{_THING})|c'est ce que je (?:fais|vais faire)(?: maintenant)?$"
        rf"|(?:je |j')(?:affiche|édite|annule|déploie|débogue|importe|exporte|actualise|intègre|inspecte|interroge|imprime|élimine|insère|indexe|archive|ouvre|utilise|évalue|adapte|ajuste) (?:l[ea]s?|l'|une?|ma|mon|mes|ce|cette|□)(?!\w)|je demande (?={_SOON}(?:au service|à l'api|au serveur|au système))"
        rf"|ajoutons (?:quelques|un|une|des|l[ea]s?|l')|je retente|je m'assure (?:d'abord |maintenant )?(?:que|de)|je mets (?:aussi |maintenant |donc |également )?(?:à jour|en place)"
        rf"|je l[ea]s? (?:vide|supprime|recharge|relance|corrige|teste|lance|ouvre|lis|nettoie|redémarre|mets à jour)\b"
        rf"|(?:je vais|laissez-moi) (?:\w+ )?traiter (?:l[ea]s?|ce|cette|ces) (?={_SOON}{_THING})|(?:parcourons|suivons|inspectons|comparons) (?:l[ea]s?|l')"
        rf"|je (?:me charge|m'occupe) (?:maintenant )?d(?:e |u |es |')(?!vous|la suite)"
        rf"|je (?:poursuis|continue|enchaîne|reprends) (?:maintenant )?(?:avec|par|sur) (?:l[ea]s?|l'|□)"
        rf"|je (?:termine|finis) (?:l[ea]s?) [^,;:]{{1,40}}? en \w+ant\b"
        rf"|j'utilise (?:plutôt|maintenant|donc|alors) |je fais (?:donc |maintenant )?(?:défiler|une recherche|une copie)"
        rf"|(?:laisse-moi|laissez-moi) (?:d'abord )?(?:le |la |les )?(?:reproduire|regarder|voir)\b"
        rf"|^(?:consultation|lecture|recherche|analyse|vérification|exécution|installation) d(?:e |u |es |').{{1,60}}\.\.\.$"
        rf"|(?:lançons|essayons|faisons|exécutons|testons) (?:ça|cela)(?!\w)"
        rf"|passons (?:maintenant )?(?:à (?:la |l')|aux? )(?:\w+(?:tion|ment|age)|tests?|mise à jour|suppression"
        rf"|création)(?!\w)"
        rf"|^\w+(?:tion|ment|age)s? (?:d(?:e |u |es |'|e la |e l')).{{1,60}} en cours(?:\.\.\.)?$"
        rf"|^(?:lecture|recherche|analyse|mise à jour) d(?:e |u |es |').{{1,60}} en cours(?:\.\.\.)?$"
        rf"|(?:je dois|j'ai besoin d(?:e |')|il me faut) ?(?:d'abord )?{_INFINITIVE}(?={_SOON}(?:avant (?:de|d'|toute)|d'abord))"
        rf"|(?:je |j')(?:re|ré)(?:vérifie|essaie|teste|lance|lis|ouvre|exécute|compile|démarre|installe|génère)\b"
        rf"|je (?:vais (?:maintenant|tout de suite) (?:le|la|les) faire|(?:vais le faire|le fais"
        rf"|m'en occupe|m'en charge) (?:maintenant|tout de suite|immédiatement))(?!\w)"
        rf"|je (?!{_SAYING}\b)\w{{4,}}(?:e|(?<!ra)is) (?:maintenant|tout de suite|à présent|d'abord) "
        rf"|(?:maintenant|ensuite|d'abord|à présent),? je (?!{_SAYING}\b)\w{{4,}}(?:e|(?<!ra)is) (?:le|la|les|un"
        rf"|une|ce|cette|ces|□)(?!\w)|je (?:charge|baisse|monte|diminue|augmente|convertis|rafraîchis|recharge"
        rf"|débogue|clone|pousse|tire) (?:le|la|les|l'|un|une|ce|cette|ces|□)"
        rf"|(?:laissez-moi|laisse-moi) (?:le |la |les |l')?(?:confirmer|charger|afficher|recharger|baisser"
        rf"|reproduire)(?!\w)"
        rf"|(?:je vais|nous allons|on va|je m'apprête à) (?:{_ADVERB} ){{0,3}}(?:l'|les |le |la |y |en |vous "
        rf"|te )?{_INFINITIVE}(?!\w)"
        rf"|je dois (?:{_ADVERB} ){{1,2}}(?:l'|les |le |la )?{_INFINITIVE}(?!\w)"
        rf"|(?:d'abord|maintenant),? je dois (?:l'|les |le |la )?{_INFINITIVE}(?!\w)"
        rf"|(?:laissez-moi|laisse-moi|permettez-moi de|permettez-moi d'|permets-moi de"
        rf"|permets-moi d') ?(?:{_ADVERB} ){{0,2}}(?:l'|les |le |la |y )?{_INFINITIVE}(?!\w)"
        rf"|(?:je |j'|j'en |j'y |je l'|je le |je la |je les ){_PRESENT}(?!\w)"
        r"|(?:regardons|jetons un|vérifions|voyons|examinons|consultons|cherchons|ouvrons|lançons|exécutons|testons"
        r"|lisons|analysons|commençons par|corrigeons|installons|explorons|listons)(?!\w))"
    ),
    before=(
        r"^(?!\W*(?:je|j')\b).*\w\W+et $|\b(?:chaque (?:nuit|jour|semaine|mois|heure|matin|soir|fois)|après l(?:e|a|es|')|prochaine?s?|d'habitude|en général|généralement|normalement|toujours|jamais|rarement|souvent|parfois|dans cette étape"
        r"|à cette étape|pour chaque|à chaque|si|s'il|sauf|sans (?:objection|réponse)|comment je|voici comment|avec votre|avec ton|lorsque|quand"
        r"|dès que|une fois|aussitôt|au besoin|en cas|sinon|à moins|après (?:votre|ton|que)|avec (?:votre"
        r"|ton) accord|dites-moi|dis-moi|envoyez|envoie-moi|indiquez|indique-moi|donnez|donne-moi|confirmez"
        r"|confirme|partagez|collez|veuillez|s'il vous plaît|donne|fournis|fournissez|montre-moi|montrez|choisis"
        r"|choisissez|répondez"
        r"|réponds|collez|il suffit|dites|supposons|disons|imaginons|vous (?:pouvez|devez"
        r"|devriez|pourriez)|à l'avenir|désormais|dorénavant|demain|dit|écrit|par exemple|prenons)\b"
    ),
    behind=(
        r"\b(?:(?<!parce )(?<!vérifier )(?<!vérifie )(?<!vérifions )(?<!maintenant )(?<!confirmer )(?<!ce )que (?:cela|ça|ce|le|la|les)"
        r"|comment (?:cela|ça) (?:se|va)\w*|ce que je peux|souvent"
        r"|d'habitude"
        r"|généralement|habituellement|chaque matin|seulement|uniquement|d'avis|votre (?:avis|opinion|point de vue)|être (?:clair|bref)|demain|(?<!de )(?<!du )(?<!pour )(?:lundi|mardi|mercredi|jeudi"
        r"|vendredi|samedi|dimanche)$|rarement|jamais|toute (?:erreur|anomalie)|moi-même|enfin|finalement|après (?:votre|ta|ton|confirmation)|les bases|plus tard"
        r"|à l'avenir|(?<!fonctionne )(?<!fonctionnent )(?<!passe )(?<!passent )(?<!échoue )(?<!marche )toujours"
        r"|^(?!.*\b(?:vérif|voi|regard|contrôl|confirm|sav|détermin|examin|test|valid|cherch|consult|assur)\w*(?: \w+){0,3} s(?:i|'il)\b).*\bsi\b|chaque (?:fois|commit|jour|nuit|semaine)|lorsque (?:vous|tu)"
        r"|si (?:vous|tu|nécessaire|besoin|cela vous)|dès que|(?<!encore )une fois(?! encore| de plus)|un exemple"
        r"|exemples|expliquer|résumer"
        r"|préciser|jusqu'à ce que|après votre|prochaine fois|au besoin|plus tard)\b|n(?:e |')\w+ plus\b|^(?!.*\bce qui\b).*\bquand\b|^(?!.*\b(?:pourquoi"
        r"|si)\b.*\bpas\b).*\bpas\b"
    ),
    addressing=(
        r"\b(?:dites-moi|dis-moi|dites-le-moi|envoyez|s'il (?:vous|te) plaît|veuillez|confirmez|voulez-vous|veux-tu"
        r"|souhaitez-vous|pouvez-vous|peux-tu|faites-moi|si vous voulez|donnez-moi|indiquez)\b"
    ),
    waiting=(
        r"(?:un (?:instant|moment)(?:,? s'il (?:vous|te) plaît)?|(?:veuillez )?patientez?(?: un instant)?"
        r"|une (?:seconde|minute)|(?:cela|ça) (?:me|nous|devrait|permettra)\b.+)"
    ),
    asking=(
        r"(?:(?:s'il (?:te|vous) plaît|stp|svp|maintenant|ensuite|puis|aussi|d'abord|ok|bien|merci|oui|bonjour"
        r"|salut|et|alors|parfait)\b,? ){0,4}(?:(?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux"
        r"|vous pouvez) (?:me |m'|aussi |l[ea]s? |l')?|(?:je veux|je voudrais|j'aimerais|il faut|j'ai besoin) (?:que tu "
        r"|que vous |de )?|aide-moi à |aidez-moi à |tu dois |vous devez )?"
        rf"(?:{_INFINITIVE}|{_PRESENT}|(?:lisez|vérifiez|regardez|consultez|cherchez|recherchez|ouvrez|exécutez"
        rf"|lancez|testez|compilez|déployez|démarrez|redémarrez|installez|mettez|mets|modifiez|changez|corrigez"
        rf"|réparez|ajustez|renommez|remplacez|supprimez|effacez|nettoyez|créez|ajoutez|écrivez|rédigez|générez"
        rf"|appliquez|configurez|activez|désactivez|éteignez|allumez|envoyez|enregistrez|copiez|déplacez|analysez"
        rf"|comparez|calculez|extrayez|téléchargez|réservez|planifiez|listez|fais-le|faites-le|continue|continuez"
        rf"|vas-y|allez-y|poursuis|poursuivez|convertis|convertissez|migre|optimise|ouvre-le|trie|triez|range"
        rf"|baisse|monte|trouve|trouvez|découvre|découvrez|détermine|déterminez|identifiez|diagnostique|résous|résolvez"
        rf"|débogue|déboguez|réglez|améliore|améliorez|(?<=que tu )(?!expl|dis|racont|décri)\w+es|fais|faites|rends|rendez|passe|passez|enlève|enlevez|veille à|examinez|inspectez|intégrez|connectez|appliquez"
        rf"|(?!dis-|dites-|expli|raconte|décri)\w+-l(?:e|a|es)))(?!\w)"
    ),
    declining=(
        r"^compare (?!l[ea]s?\b|l'|ce|une?\b|□)|\b(?:explique|expliquez|expliquer|décris|décrivez|résume|résumez|(?:rédig|écri)\w*(?:-moi)? (?:un|une|le|la) (?:e-?mail|courriel|message|lettre|réponse|tweet|post|note)\b|dis-moi|dites-moi|(?:écri|montre|racont|dis|dit)\w*(?:-moi)? (?:pourquoi"
        r"|comment|ce que|quel\w*)|plan|proposition|ne (?:change|modifie|touche|lance|fais|exécute)\w* (?:rien|pas)"
        r"|sans (?:changer|exécuter|toucher|modifier|lancer)|seulement (?:expliquer|savoir)|avis|poème|histoire"
        r"|blague|différence)\b"
    ),
    questioning=r"\b(?:pourquoi|comment|qu'est-ce|quel(?:le)?s?|où|qui|quand)\b",
    polite=r"\b(?:peux-tu|pouvez-vous|pourrais-tu|pourriez-vous|tu peux|vous pouvez)\b",
    forbidding=(
        r"\bne (?:change|modifie|touche|lance|fais|exécute)\w* (?:rien|pas)\b|\bsans (?:rien )?(?:changer|exécuter"
        r"|toucher|modifier|lancer)\b"
    ),
    agreeing=r"oui|d'accord|s'il (?:te|vous) plaît",
)
