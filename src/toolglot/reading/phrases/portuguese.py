"""Phrases of narrated stops and requests: Portuguese."""

from __future__ import annotations

from toolglot.reading.phrases.record import TECHNICAL, Phrases

_INFINITIVE = (
    r"(?:ler|dividir|organizar|medir|empacotar|reempacotar|recompilar|silenciar|fechar|pausar|compartilhar|anexar"
    r"|formatar|regular|aumentar|diminuir|reduzir|ampliar|refinar"
    r"|restringir|convidar|perguntar ao|traduzir|transcrever|registrar|etiquetar|classificar|arquivar|responder ao"
    r"|encaminhar|clonar|sincronizar|comprimir|descompactar|redimensionar|recalcular|refazer|preparar|completar"
    r"|redigir|bloquear|desbloquear|estudar|avaliar|identificar|isolar|rastrear|conectar|integrar|entender"
    r"|compreender|revisar|rever|percorrer|passar (?:por|pelas|pelos|pela|pelo)|renovar|repetir|ordenar|agrupar"
    r"|reunir|coletar|publicar|otimizar|migrar|restaurar|imprimir|verificar|checar|conferir|examinar|inspecionar"
    r"|ver|olhar|dar uma (?:\w+ )?olhada|buscar|procurar|pesquisar|abrir|consultar|executar|rodar|testar|compilar"
    r"|construir|implantar|iniciar|reiniciar|instalar|desinstalar|atualizar|modificar|editar|alterar|mudar|corrigir"
    r"|consertar|arrumar|reparar|ajustar|refatorar|renomear|substituir|reescrever|remover|excluir|apagar|deletar"
    r"|limpar|criar|adicionar|inserir|escrever|gerar|implementar|aplicar|configurar|ativar|desativar|desligar|ligar"
    r"|acender|tocar|enviar|mandar|salvar|guardar|copiar|mover|mesclar|reverter|conectar|navegar|acessar|investigar"
    r"|explorar|analisar|depurar|comparar|contar|calcular|extrair|filtrar|converter|agendar|marcar|reservar|listar"
    r"|obter|baixar|descarregar|carregar|subir|tentar|(?:usar|utilizar)(?=.*(?:ferramenta|função|comando|busca|api"
    r"|script|□| para ))|localizar|encontrar|descobrir|prosseguir|validar|importar|exportar|puxar|fazer (?:isso"
    r"|(?:a|uma|essa) (?:busca|consulta|pesquisa|alteração|mudança|correção|cópia|chamada|verificação)|(?:o"
    r"|um) (?:download|upload|commit|deploy|push|backup|ajuste|teste)|os ajustes|as (?:alterações|mudanças"
    r"|correções)))"
)
_PRESENT = (
    r"(?:leio|verifico|confiro|examino|busco|procuro|abro|consulto|executo|rodo|testo|instalo|atualizo|edito|altero"
    r"|mudo|corrijo|ajusto|removo|apago|excluo|crio|adiciono|gero|aplico|configuro|ligo|desligo|envio|salvo|analiso"
    r"|comparo|baixo|reinicio)"
)
_CLITIC = r"(?:-(?:lo|la|los|las|o|a|os|as))?"
_VERB = (
    rf"(?:{_INFINITIVE}(?!\w)|(?:criá|procurá|renová|revisá|movê|limpá|substituí|instalá|atualizá|verificá|corrigi"
    rf"|abri|lê|removê|apagá|executá|editá|testá|adicioná|analisá|ajustá|alterá|buscá|excluí|configurá|enviá"
    rf"|salvá)-l[oa]s?|(?!explic|avis|deix|ajud|lembr|inform|aguard|esper|mant|guard)\w+(?:á|ê|í)-l[oa]s?"
    r"|(?:começar|iniciar) (?:por|com|a|pelo|pela|lendo|listando|verificando|analisando|abrindo))"
)
_ADVERB = (
    r"(?:agora|primeiro|já|também|diretamente|rapidamente|então|logo|te|lhe|imediatamente|em seguida|começar a"
    r"|tentar|proceder a|passar a|o|a|os|as)"
)
_SAYING = (
    r"(?:explico|resumo|esclareço|mostro|digo|penso|acho|creio|sou|estou|sei|entendo|compreendo|vejo|conheço|posso"
    r"|quero|devo|vou|espero|fico|paro|descrevo|respondo|lembro|deixo|dou|tomo|agradeço|encontro|suponho|considero"
    r"|prefiro|desejo|proponho|sugiro|recomendo|apresento|detalho|termino|passo|volto|tenho|preciso|faço|uso"
    r"|utilizo|trabalho|falo|como|conto|aceito)"
)
"""Verbs of saying, thinking and being: no actions, also where any other verb is one."""
_SAYING_STEM = (
    r"(?:abord|hac|faz|cont(?!a el|a la)|cant|jug|jog|gan|viv|sonh|soñ|explic|resum|esclar|mostr|diz|dir|pens|ach|cre"
    r"|ser|estar|sab|entend|conhec|pod|quer|dev|esper|fic|par(?=ar)"
    r"|descrev|respond|lembr|record|deix|dar|tom|agradec|supo|consider|prefer|desej|propo|suger|recomend"
    r"|recomiend|apresent|detalh"
    r"|termin|ter|precis|trabalh|fal|contar-|aceit|assum|mant|respeit|evit|ignor|omit|us(?=a)|utiliz|avis|inform"
    r"|notific|ajud|aconselh|cit|nome|menc|destac|sublinh|enfat|ilustr|compart|acompanh|oferec|segu|rejeit|neg|absten"
    r"|limit|trat|interpret|cham|refer|defin|opin|valoriz|apoi|confi(?!r)|aguard|lev|volt|retorn|gost|alegr|sent|lament"
    r"|desculp|prest|atent|encerr|recus|hav|suspeit|receb|apreci|admir|tem[eo]|domin|possu|represent|aprov|celebr"
    r"|saud|desaconselh|odi|ador|conserv|armazen|aprend|monitor|supervis|vigi|observ|torc|apost|vot|recapit"
    r"|continuar (?:disp|à)|transfer|segur|cuid(?!ar d)|esforc|garant|assegur"
    r"|promet|reconhec|opt|base|foc|concentr|restring|acord|parabeniz|duvid|public(?=aremos)|lanç(?=aremos))"
)
_THING = (
    r"(?:arquivos?|ficheiros?|testes?|registros?|código|pastas?|diretórios?|servidor(?:es)?|banco(?: de dados)?"
    r"|bases? de dados|tabelas?|funç(?:ão|ões)|classes?|módulos?|pacotes?|dependências?|configuraç(?:ão|ões)|ramos?"
    r"|páginas?|requisiç(?:ão|ões)|consultas?|erros?|falhas?|comandos?|variáve(?:l|is)|rotas?|documentação"
    r"|calendário|agenda|faturas?|pedidos?|contas?|dados|imagens?|contêiner(?:es)?|portas?|processos?|vers(?:ão|ões)"
    r"|linhas?|projetos?|repositórios?|migraç(?:ão|ões)|permiss(?:ão|ões)|reserva|rastros?|linhas?|colunas?"
    r"|chaves?|serviços?|sistema|seç(?:ão|ões)|parte|hipótese|previsão|respostas?|saída|resultados?"
    r"|contador(?:es)?|ferramentas?|terminal|navegador|botão|formulário|luzes|planilhas?|relatórios?|reuni(?:ão"
    r"|ões)|voos?|ediç(?:ão|ões)|indentação|alteraç(?:ão|ões)|mudanças?"
    rf"|correç(?:ão|ões)|{TECHNICAL})(?!\w)"
)
"""Things that tools work on: a verb with one of them is an action, unless it is a verb of saying."""
_SOON = r" ?(?:(?!(?:em|no|na|nos|nas|sobre|com|por|pelo|pela|para|ao|que|se)\b)[^\s,;:]+ ){0,3}?(?<!\w)"
"""What may stand between a verb and its object: no preposition, since a thing behind one is no object."""
_FUTURE = (
    r"(?!(?:re)?(?:(?:prep|comp|rep|sep|decl|disp|amp|equip|p)ar|(?:g|gen|recup|sup|op|esp|alt|lib|consid|acel|mod|num"
    r"|enum|tol|it|reit|pond|coop)er|(?:t|ret|v|g|adm|insp|resp|asp|m|conf)ir)ei\b)(?:\w{2,}[aei]rei|\w*porei|\w*farei)"
)
"""A verb in the future. The past of verbs such as "alterar" and "retirar" looks like one and is listed."""
_GERUND = (
    r"(?!func|and|pens|esper|fal|aguard|entendo|compreendo|aprendo|defendo|resum|conclu|ten|segu|consider|sup|part"
    r"|bas|diz"
    r"|sen|hav"
    r"|pod|explic|lembr)\w{2,}ndo(?:-[oa]s?)?(?!\w)"
)
"""A verb that says what goes on, in a sentence without a subject."""
PHRASES = Phrases(
    leads=(
        r"(?:agora|primeiro|depois|então|em seguida|a seguir|ok|certo|bem|bom|claro|perfeito|entendido|e|mas"
        r"|próximo passo|também|antes de tudo|além disso|de passagem|por fim|finalmente|eu|agora mesmo"
        r"|em primeiro lugar|para começar)(?:,? )"
    ),
    joins=r"então|por isso|portanto|assim|e|mas|eu",
    announcing=(
        rf"(?:^(?:(?:agora|ok|certo|bem),? )?{_GERUND}(?: (?!é\b|est|foi|ser)[^ ,]+){{0,8}}(?: (?:primeiro|de novo"
        rf"|novamente|agora"
        rf"(?: mesmo)?)(?:\.\.\.)?|\.\.\.)$"
        rf"|estou (?:agora )?(?:realizando|fazendo|processando) (?:agora )?(?:[oa]|uma?|seu|sua) (?:transferência"
        rf"|consulta|busca|pagamento|reserva|pedido|cópia|teste)(?!\w)"
        rf"|(?:agora|já|depois) faço (?:[oa]s? |uma? )?(?:commit|push|deploy|merge|backup|cópia|teste|mudança"
        rf"|alteração)"
        rf"|(?:só )?um (?:momento|segundo|instante"
        rf"|minuto)(?:,? por favor,?)? enquanto (?:eu )?(?:[oa]s? )?(?!{_SAYING}\b)\w{{3,}}o(?!\w)"
        rf"|(?<=, )(?:quero|preciso|devo) (?:ver|olhar|verificar) (?=.*(?:como|o que|onde))(?!.*\b(?:você|seu|sua"
        rf"|quer)\b)"
        rf"|(?:confirmo|verifico|valido)(?: isso| isto)? \w+ndo(?!\w)|(?:começo|inicio) (?:por|pelo|pela|com) (?!diz"
        rf"|expl|resum|agrad)\w+"
        rf"|vamos (?:agora )?(?:para|pr[ao]|à|ao) (?:[oa]s? )?{_THING}|(?:já|logo) (?:procuro|busco|verifico|envio"
        rf"|vejo) (?:isso|isto|[oa]s?)(?!\w)"
        rf"|vou (?:pedir|perguntar|solicitar) a(?:o|à)? (?:buscador|sistema|servidor|servi|api|ferramenta|banco)"
        rf"|agora é (?:verificar|testar|conferir|ver|rodar|checar) (?:se|o|a)(?!\w)(?!.*\b(?:você|seu|sua)\b)"
        rf"|(?:me dê|me dá|dê-me|dá-me) um (?:momento|segundo|instante|minuto) (?:para|enquanto) \w+"
        rf"|(?:vou|irei|vamos) (?:{_ADVERB} ){{0,2}}(?!{_SAYING_STEM})\w{{3,}}(?:ar|er"
        rf"|ir)(?:-\w+)?(?!\w)(?={_SOON}{_THING})"
        rf"|(?:deixe-me|deixa-me|deixe eu|deixa eu|permita-me|me deixe|me deixa) (?:{_ADVERB} )?"
        rf"(?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir)(?:-\w+)?(?!\w)(?={_SOON}{_THING})"
        rf"|(?!{_SAYING_STEM}){_FUTURE}\b(?={_SOON}{_THING})"
        rf"|(?:vou|irei) (?:cuidar|tratar|me encarregar) (?:agora )?d[aoe]s? |(?:vou"
        rf"|irei) dar uma (?:\w+ )?(?:espiada|conferida|vasculhada)"
        rf"|(?:vou|deixe-me|deixa eu|irei) (?:{_ADVERB} ){{0,2}}reproduzir\b"
        rf"|^(?:agora )?(?:continuando|prosseguindo|seguindo|passando|mudando) (?:agora )?(?:com|para"
        rf"|pr[ao]) (?:[oa]s?|□)(?=[^,]*$)"
        rf"|(?:continuo|prossigo|sigo) (?:agora )?com [oa]s? (?={_SOON}{_THING})"
        rf"|(?:farei|vou fazer|faço) uma? (?:\w+ )?(?:cópia|captura|busca|consulta|teste|backup|pausa técnica)"
        rf"|vou (?:pegar|tirar|puxar|trazer) (?:[oa]s?|uma?) "
        rf"|vou (?:agora )?para [oa]s? (?={_SOON}{_THING})|(?:então )?(?:vou fazer isso|é o que (?:farei"
        rf"|vou fazer)|farei isso)$"
        rf"|primeiro (?:eu )?{_PRESENT}(?!\w)|depois (?:eu )?{_PRESENT}(?!\w)(?={_SOON}{_THING})"
        rf"|vamos ver o que (?!acontece)\w+(?={_SOON}{_THING})"
        rf"|^(?!pens|esper|fal|aguard|entendo|compreendo|aprendo|defendo)\w{{3,}}ndo agora (?:[oa]s?|uma?"
        rf"|□)(?=[^,]*$)|(?:vou|irei) me aprofundar "
        rf"|vou desfazer "
        rf"|(?:vou|irei) (?:{_ADVERB} ){{0,2}}(?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir) (?:[oa]s?|uma?|est[ea]s?"
        rf"|ess[ea]s?|seus?"
        rf"|suas?)(?={_SOON}{_THING})"
        rf"|(?:vou|irei) (?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir)\b(?=[^,;:]{{0,80}}? (?:agora|de novo|novamente"
        rf"|outra vez|para (?:confirm|verific|ver\b|garant|test)))"
        rf"|(?<=então )vou (?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir)(?!\w)|vou (?:pedir|solicitar|associar"
        rf"|atribuir) (?:[oa]s?|uma?)(?!\w)"
        rf"|é (?:lá|isso|aí) que vou \w+"
        rf"|mudando agora (?:para|pr[ao])(?!\w)"
        rf"|(?:começarei|iniciarei|vou (?:começar|iniciar)) (?!explic|resum|diz|escl)\w+ndo\b"
        rf"|(?:agora|em seguida|primeiro),? (?!{_SAYING_STEM}|te|cont|ve|faz|va)\w{{3,}}mos (?:[oa]s?|uma?"
        rf"|est[ea]|□)(?!\w)"
        rf"|(?:o próximo passo|a próxima coisa) (?:que (?:farei|vou fazer) )?(?:é|será) {_INFINITIVE}(?!\w)"
        rf"|^(?:agora )?(?!pens|esper|fal|aguard|entendo|compreendo|aprendo|defendo)\w{{3,}}ndo (?:[oa]s?|uma?"
        rf"|□)(?=(?: [^ ,]+){{0,8}}"
        rf"(?: agora(?: mesmo)?(?:\.\.\.)?|\.\.\.)$)"
        rf"|(?:preciso|devo|tenho que|tenho de) {_VERB}(?=[^,;:]{{0,80}}? antes de (?!que)\w+)"
        rf"|um (?:momento|segundo|instante)(?:,? por favor)?, estou (?!pensando|aguardando|esperando)\w+ndo(?!\w)"
        rf"|(?:vou fazê-lo|vou fazer isso|faço isso|farei isso|faço-o) (?:agora(?: mesmo)?|já"
        rf"|imediatamente)(?!\w)"
        rf"|(?:agora|em seguida|primeiro|a seguir),? (?:eu )?(?!{_SAYING}\b)\w{{3,}}o (?:o|a|os|as|um|uma|este"
        rf"|esta|□)(?!\w)"
        rf"|(?:deixe-me|deixa eu|deixe eu|permita-me) (?:confirmar|carregar|imprimir|reproduzir|recarregar|baixar"
        rf"|subir|depurar)(?!\w)"
        rf"|(?:vou|irei|vamos|estou indo) (?:{_ADVERB} ){{0,3}}{_VERB}{_CLITIC}(?!\w)"
        rf"|(?:deixe-me|deixa-me|deixe eu|deixa eu|deixa-me|permita-me|me deixe"
        rf"|me deixa) (?:{_ADVERB} ){{0,2}}{_VERB}{_CLITIC}(?!\w)"
        rf"|(?:{_INFINITIVE}ei|começarei (?:por|com|a|lendo|listando|pelo|pela)|farei (?:isso|uma busca"
        rf"|uma consulta|a alteração|a correção)|(?:usarei|utilizarei)(?=.*(?:ferramenta|função|comando|busca|api"
        rf"|script|□| para ))|obterei)(?!\w)"
        rf"|(?:preciso|devo|tenho que|tenho de) {_VERB}{_CLITIC} (?:primeiro|antes)(?!\w)"
        rf"|(?:preciso|devo|tenho que|tenho de) (?:primeiro|agora|antes) {_VERB}{_CLITIC}(?!\w)"
        rf"|(?:agora|primeiro),? (?:eu )?(?:preciso|tenho que|tenho de) {_VERB}{_CLITIC}(?!\w)"
        rf"|(?:agora|já|agora mesmo) (?:eu )?{_PRESENT}(?!\w)|{_PRESENT}(?!\w)(?= .*\b(?:agora|já)\b)"
        r"|(?:vejamos|verifiquemos|comecemos|analisemos|busquemos)(?!\w)|estou (?:lendo|verificando|buscando"
        r"|abrindo|consultando|executando|rodando|instalando|atualizando|criando|analisando|baixando|procurando"
        r"|pesquisando)\b(?=.*(?:\bagora\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\w\W+e (?:eu )?(?:(?:agora|então),? )?$|\b(?:tod[ao]s? (?:[ao]s )?(?:noite|dia|semana|mês|hora|manhã"
        r"|vez)|cada (?:noite|dia|vez)|após [ao]s?|depois d[ao]s?|próxim[oa]s?|normalmente|geralmente"
        r"|habitualmente|sempre|nunca|jamais|raramente|em geral|às vezes|neste passo|para cada|em cada|se"
        r"|depois d[oa] seu|depois da sua|após o seu|salvo|exceto|com a sua|com sua|quando|assim que|uma vez"
        r"|logo que|caso|se necessário|a menos|até que|depois que|após (?:a sua|sua|o seu|seu)"
        r"|com (?:a )?sua (?:permissão|aprovação)|diga|me diga|envie|me envie|mande|me mande|me passe|confirme"
        r"|compartilhe|informe|por favor|cole|me dê|dê|me dá|me mostre|mostre|escolha|responda|forneça|passe|basta"
        r"|é só|só me|suponha|suponhamos|digamos|imagine|você (?:pode|deve|deveria|poderia)"
        r"|no futuro|de agora em diante|a partir de agora|amanhã|diz|escreve|escreveu|por exemplo)\b"
    ),
    behind=(
        r"\b(?:(?<!por )(?<!o )que (?:isso|isto|só|o|a)|como (?:fica|vai|está)\w*|o que posso|ver se posso"
        r"|frequentemente"
        r"|normalmente|geralmente|toda manhã|todo dia|somente|apenas|de ideia|ser (?:claro|breve)|amanhã"
        r"|na (?:segunda|terça"
        r"|quarta|quinta|sexta)|no (?:sábado|domingo)|(?<!de )(?<!da )(?<!para )(?:segunda|terça|quarta|quinta"
        r"|sexta)-feira|qualquer (?:erro|problema|novidade|mudança)|por fim|no final|finalmente"
        r"|depois da sua|após sua|básico|mais tarde|depois que|no futuro|sempre|(?:de|em|por|a) cada|cada (?:vez"
        r"|commit|dia|noite"
        r"|semana)|toda vez|quando (?:você|quiser|me|estiver|for)|se (?:quiser|você|for|necessário|preferir"
        r"|precisar)|assim que|um exemplo|exemplos|explicar|resumir|esclarecer|até que|após a sua|próxima vez"
        r"|próxim[oa]s|caso)\b|^(?!.*\b(?:ver|verific|confer|confir|chec|olh|sab|descob|determin|test|valid|busc"
        r"|consult)\w*(?: \w+){0,3} se\b).*\bse\b"
        r"|^(?!.*\b(?:o que|como|quem)\b).*\bquando\b"
    ),
    addressing=(
        r"\b(?:me diga|diga|me avise|avise|me envie|envie|por favor|confirme|você pode|quer que|prefere|se quiser"
        r"|me passe|compartilhe)\b"
    ),
    waiting=(
        r"(?:(?:só )?um (?:momento|segundo|instante|minuto)(?:,? por favor)?"
        r"|(?:por favor,? )?aguarde(?: um momento)?|já volto|(?:isso|assim) (?:me|nos|deve|vai)\b.+)"
    ),
    asking=(
        r"(?:(?:por favor|agora|depois|também|primeiro|ok|certo|obrigado|obrigada|sim|olá|oi|e|então|só"
        r"|perfeito)\b,? ){0,4}(?:(?:você )?(?:pode|poderia|consegue) |(?:quero|preciso|gostaria) (?:que você "
        r"|de )?|me ajude a |tem que |precisa |vamos )?"
        rf"(?:{_INFINITIVE}(?:-(?:o|a|os|as|me))?|(?:leia|verifique|confira|cheque|busque|procure|pesquise|abra"
        rf"|consulte|execute|rode|teste|compile|inicie|reinicie|instale|atualize|modifique|edite|altere|mude"
        rf"|corrija|conserte|arrume|ajuste|renomeie|substitua|remova|exclua|apague|delete|limpe|crie|adicione"
        rf"|escreva|gere|implemente|aplique|configure|ative|desative|desligue|ligue|acenda|envie|mande|salve|copie"
        rf"|mova|analise|calcule|extraia|converta|agende|marque|reserve|liste|baixe|suba|faça|continue"
        rf"|prossiga|siga|pode continuar|migre|otimize|refatore|roda|cria|arruma|apaga|abre|corrige|manda|liga"
        rf"|desliga|coloca|coloque|descubra|descobre|encontre|investigue|determine|identifique|localize|diagnostique"
        rf"|resolva|depure|repare|examine|inspecione|conecte|integre|melhore|amplie|(?!que|onde|uma|essa|esta"
        rf"|toda|para|sobre|entre|cada|nessa|hoje|explique|conte|diga|mostre|descreva|sobre|gosta|seja"
        rf"|porque)\w{{3,}}[ea](?= (?:os?|as|uma?) )|veja|olhe|dê uma olhada|adiciona|verifica|atualiza|conserta"
        rf"|(?!expli|diga|conte|descrev)\w+-(?:[oa]s?|l[oa]s?)))(?!\w)"
    ),
    declining=(
        r"\b(?:sem código|explique|explica|explicar|descreva|resuma|resumir|me diga|diga|o que (?:acha|significa)"
        r"|(?:redij"
        r"|escrev)\w* (?:um|uma|o|a) (?:e-?mail|mensagem|carta|resposta|tuíte|post|nota)\b"
        r"|(?:escrev|cont|ensin|mostr)\w* (?:por que|como|o que|qual)|plano|proposta|não (?:mude|altere|mexa"
        r"|modifique|execute|faça|edite)|sem (?:mudar"
        r"|executar|mexer|alterar|modificar)|só (?:explique|me diga|quero saber)|opinião|poema|conto|piada|história"
        r"|diferença)\b"
    ),
    questioning=r"\b(?:por qu[eê]|porquê|como|o que|qual|quais|onde|quem|quando)\b",
    polite=r"\b(?:pode|poderia|consegue)\b",
    forbidding=(
        r"\bnão (?:mude|altere|mexa|modifique|execute|faça|edite)\b|\bsem (?:mudar|executar|mexer|alterar"
        r"|modificar)\b"
    ),
    agreeing=r"sim|claro|pode|pode ser|isso|por favor",
)
