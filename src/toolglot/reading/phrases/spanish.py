"""Phrases of narrated stops and requests: Spanish."""

from __future__ import annotations

from toolglot.reading.phrases.record import TECHNICAL, Phrases

_INFINITIVE = (
    r"(?:leer|silenciar|cerrar|bloquear|pausar|compartir|adjuntar|formatear|detener (?:el|la|los)|parar el|regular"
    r"|atenuar|bajar|ampliar|acotar|refinar|invitar|preguntar a|traducir|transcribir|registrar|etiquetar|clasificar"
    r"|archivar|responder al|reenviar|clonar|sincronizar|comprimir|descomprimir|redimensionar|recalcular|rehacer"
    r"|preparar|terminar de|completar (?:el|la)|redactar|subir|desbloquear|bloquear|bajar|estudiar|evaluar"
    r"|identificar|aislar|rastrear|volver a \w+|conectar|integrar|enlazar|sustituir|restablecer|desactivar|depurar"
    r"|entender|comprender|repasar|recorrer|renovar|repetir|ordenar|agrupar|recopilar|publicar|optimizar|migrar"
    r"|restaurar|imprimir|mostrar el contenido|subir|revisar|verificar|comprobar|examinar|inspeccionar|ver|mirar"
    r"|echar (?:un vistazo|una mirada)|dar (?:un vistazo|una mirada)|buscar|abrir|consultar|ejecutar|correr|probar"
    r"|lanzar|compilar|construir|desplegar|iniciar|reiniciar|arrancar|instalar|desinstalar|actualizar|modificar"
    r"|editar|cambiar|corregir|arreglar|reparar|ajustar|refactorizar|renombrar|reemplazar|reescribir|eliminar"
    r"|borrar|quitar|limpiar|crear|agregar|añadir|insertar|escribir|generar|implementar|aplicar|configurar|activar"
    r"|desactivar|apagar|encender|reproducir|enviar|mandar|guardar|copiar|mover|fusionar|revertir|conectar|navegar"
    r"|visitar|investigar|explorar|analizar|depurar|comparar|contar|calcular|extraer|filtrar|convertir|programar"
    r"|agendar|reservar|listar|obtener|descargar|subir|intentar|(?:usar|utilizar)(?=.*(?:herramienta|función"
    r"|comando|búsqueda|api|script|□| para ))|localizar|encontrar|averiguar|proceder|comenzar (?:por|con|a|leyendo"
    r"|revisando|listando|analizando)|empezar (?:por|con|a)|validar|importar|exportar|hacer (?:eso|esto|el cambio"
    r"|los cambios|la consulta|una consulta|una búsqueda)|poner|cargar|traer|recuperar)"
)
_PRESENT = (
    r"(?:leo|silencio (?:el|la)|cierro|bloqueo|pauso|comparto|detengo (?:el|la|los)|implemento|mando"
    r"|bajo (?:el|la|los|las)|subo|amplío|traduzco|registro (?:el|la)|preparo|completo|estudio el|localizo|exploro"
    r"|filtro|convierto|programo|reservo|miro (?:el|la|los|las|su|sus|□)|conecto|reescribo|integro|enlazo|sustituyo"
    r"|reemplazo|renombro|restauro|publico|ordeno|agrupo|recojo|pongo (?:el|la|los|las)|renuevo|repito|repaso"
    r"|recorro|reviso|verifico|compruebo|examino|busco|abro|consulto|ejecuto|corro|pruebo|lanzo|compilo|inicio"
    r"|reinicio|instalo|actualizo|modifico|edito|cambio|corrijo|arreglo|ajusto|elimino|borro|creo (?:el|la|los|las"
    r"|un|una|□)|agrego|añado|escribo (?:el|la|los|las|un|una|□)|genero|aplico|configuro|activo|desactivo|apago"
    r"|enciendo|envío|guardo|copio|muevo|analizo|comparo|calculo|extraigo|descargo|listo los|obtengo|procedo (?:a"
    r"|con)|comienzo (?:por|con|a)|empiezo (?:por|con|a)|intento)"
)
_ADVERB = (
    r"(?:ahora|primero|ya|también|directamente|rápidamente|entonces|a continuación|inmediatamente|luego|proceder a"
    r"|comenzar a|empezar a|intentar|tratar de|pasar a|volver a)"
)
_SAYING = (
    r"(?:explico|resumo|aclaro|muestro|digo|pienso|creo|soy|estoy|sé|entiendo|comprendo|veo|conozco|puedo|quiero"
    r"|debo|voy|espero|quedo|paro|describo|respondo|recuerdo|dejo|doy|tomo|agradezco|encuentro|supongo|considero"
    r"|prefiero|deseo|propongo|sugiero|recomiendo|presento|detallo|termino|paso|vuelvo|tengo|necesito|hago|uso"
    r"|utilizo|trabajo|hablo|como|solo|cuento|acepto)"
)
"""Verbs of saying, thinking and being: no actions, also where any other verb is one."""
_SAYING_STEM = (
    r"(?:expli|resum|aclar|mostr|dec|dir|pens|cre(?=e)|ser|estar|sab|entend|conoc|pod|quer|deb|esper|qued|par(?=ar)"
    r"|describ|respond|record|dej|da[rn]|tom|agradec|supon|consider|prefer|dese|propo|suger|recom|present|detall"
    r"|termin|ten[ed]|necesit|trabaj|habl|contar(?:te|é que)|acept|asum|mant|respet|evit|ignor|omit|us(?=a)|utiliz"
    r"|avis|inform|notific|ayud|aconsej|cit|nombr|menc|señal|destac|subray|enfatiz|ilustr|compart|acompañ|ofrec"
    r"|segu|rechaz|neg|abst|sospech|recib|apreci|admir|tem[eo]|domin|pose|represent|aprob|celebr|salud|desaconsej"
    r"|odi|ador|conserv|almacen|aprend|supervis|monitor|vigil|observ|anim|apost|vot|cuid|esforz|intentaré ser"
    r"|mejoraré mi|despert|felicit|dud|garantiz|asegur(?=aré de q)|promet|reconoc|opt|bas|centr|enfoc|restring"
    r"|encarg(?=aré al)|public(?=aremos)|limit|conform|trat|interpret|llam|refer|defin|opin|valor|apoy|confi(?!r)"
    r"|ten|guard(?=aré en)"
    r"|estar|haber|hab|vol|regres|ponerme|pondré en|encantar|gustar|alegr|sent|lament|disculp|perd|prest|aten)"
)
_THING = (
    r"(?:archivos?|ficheros?|pruebas?|registros?|código|carpetas?|directorios?|servidor(?:es)?|base de datos"
    r"|tablas?|funci[oó]n(?:es)?|clases?|módulos?|paquetes?|dependencias?|configuraci[oó]n|ajustes|ramas?"
    r"|páginas?|peticion(?:es)?|consultas?|error(?:es)?|fallos?|comandos?|variables?|rutas?|documentación"
    r"|correos?|calendario|facturas?|pedidos?|cuentas?|datos|imágen(?:es)?|imagen|contenedor(?:es)?|puertos?"
    r"|procesos?|versi[oó]n(?:es)?|líneas?|proyectos?|repositorios?|migraci[oó]n(?:es)?|permisos|reserva"
    rf"|trazas?|filas?|columnas?|claves?|servicios?|sistema|secci[oó]n(?:es)?|parte|hipótesis|pronóstico"
    rf"|respuestas?|salida|resultados?|contador(?:es)?|herramientas?|terminal|navegador|botón|formulario|luces"
    rf"|hojas?|informes?|reuni[oó]n(?:es)?|agenda|vuelos?|edici[oó]n|indentación|cambios?|correcci[oó]n(?:es)?"
    rf"|{TECHNICAL})(?!\w)"
)
"""Things that tools work on: a verb with one of them is an action, unless it is a verb of saying."""
_SOON = r"[^,;:]{0,80}?(?<!\w)"
PHRASES = Phrases(
    leads=(
        r"(?:ahora|primero|luego|entonces|a continuación|después|ok|vale|bien|bueno|claro|perfecto|entendido|y|pero"
        r"|siguiente paso|también|antes de nada|además|de paso|confirmado\.?|enseguida|vamos allá|por último"
        r"|finalmente|de acuerdo|ahora mismo|en primer lugar|para empezar|yo)(?:,? )"
    ),
    joins=r"así que|por lo que|por eso|por tanto|y|pero|entonces|luego",
    announcing=(
        rf"(?:(?:dame|deme|denme) un (?:momento|segundo|instante|minuto) (?:para|mientras) \w+"
        rf"|(?:ahora |a continuación |primero )?(?:voy|vamos) (?:{_ADVERB} )?a (?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir)"
        rf"(?:l[oae]s?|te|se|me)?\b(?={_SOON}{_THING})"
        rf"|(?:déj[ae]me|dejame|permít[ae]me|permiteme|permítanme|déjenme|permitidme|dejadme) (?:{_ADVERB} )?"
        rf"(?!{_SAYING_STEM})\w{{3,}}(?:ar|er|ir)(?:l[oae]s?|te|se)?\b(?={_SOON}{_THING})"
        rf"|(?:(?:lo|la|los|las) )?(?!{_SAYING_STEM})\w{{3,}}ré\b(?={_SOON}{_THING})"
        rf"|(?:comenzaré|empezaré|voy a (?:empezar|comenzar)) (?!explic|resum|dic|acl)\w+ndo\b"
        rf"|(?:ahora|a continuación|primero),? (?!{_SAYING_STEM}|ten|cont|ve|hac|va)\w{{3,}}mos (?:el|la|los|las"
        rf"|un|una|este"
        rf"|esta|□)(?!\w)"
        rf"|paso (?:ahora )?a {_INFINITIVE}(?!\w)"
        rf"|(?:me (?:encargo|ocupo) (?:ahora |ya )?de|me pongo (?:ahora |ya )?(?:con|a)) (?!explic|mantener|avis)\w+"
        rf"|(?:continúo|sigo|continuaré|seguiré|prosigo) (?:ahora )?con (?:el|la|los|las|□)(?={_SOON}{_THING})"
        rf"|(?:termino|acabo|finalizo|terminaré) (?:el|la|los|las) [^,;:]{{1,40}}? \w+ndo\b"
        rf"|(?:ahora mismo|enseguida|ya mismo|ahora|primero),? (?:l[oa]s? )?(?!{_SAYING}\b|\w+[ai]do\b|hecho"
        rf"|resuelto|listo|visto)\w{{3,}}o\b"
        rf"(?= (?:en|con|a|el|la|los|las|un|una|□)(?!\w))"
        rf"|hag[o] (?:una?) (?:captura|copia|prueba|búsqueda|consulta|respaldo|commit)|haré una (?:\w+ )?(?:copia"
        rf"|captura|prueba|búsqueda|consulta)"
        rf"|paso (?:ahora )?(?:al|a l[ao]s?) (?={_SOON}{_THING})|(?:eso|esto|así lo) haré$|eso hago(?: ahora)?$"
        rf"|iré \w+ por \w+"
        rf"|(?:l[oa]s? )?vuelvo a (?:intentar|probar|ejecutar|lanzar|mirar|leer|revisar)\w*|l[oa]s? (?:vacío"
        rf"|borro|recargo|limpio|subo|bajo|abro|reviso|miro) "
        rf"|(?:saco|traigo|vacío|recargo|resuelvo|cojo|monto|levanto|despliego|compruebo|descargo|extraigo) (?:el"
        rf"|la|los|las|un|una|□)(?={_SOON}{_THING})"
        rf"|echo (?:un|una) (?:vistazo|ojeada|mirada)|haré (?:clic|scroll|una captura|una copia)"
        rf"|(?:se )?(?:lo|la|los|las) (?:preguntaré|pediré) (?:al|a la) (?={_SOON}{_THING}|clúster|sistema|api)"
        rf"|(?!{_SAYING_STEM}|sup|hag|di)\w{{3,}}[ae]mos ahora (?={_SOON}{_THING})"
        rf"|lo (?:siguiente|próximo|primero) (?:que (?:haré|voy a hacer) |)(?:es|será) {_INFINITIVE}(?!\w)"
        rf"|^(?!pens|esper|habl)\w{{3,}}ndo ahora (?:el|la|los|las|un|una|□)(?=[^,]*$)|(?:dame"
        rf"|deme) un (?:momento|segundo|minuto) y \w+o\b"
        rf"|paso (?:también |ahora )?(?:el|la|los|las) (?={_SOON}{_THING})"
        rf"|^(?:ahora )?(?!pens|esper|habl)\w{{3,}}ndo (?:el|la|los|las|un|una|□)(?=(?: [^ ,]+){{0,8}}"
        rf"(?: ahora(?: mismo)?(?:\.\.\.)?|\.\.\.)$)"
        rf"|(?:necesito|debo|tengo que) {_INFINITIVE}(?={_SOON}antes de (?!que)\w+)"
        rf"|un (?:momento|segundo|instante)(?:,? por favor)?, estoy (?!pensando|esperando)\w+ndo(?!\w)"
        rf"|(?:lo hago|voy a hacerlo|lo haré|lo voy a hacer) (?:ahora(?: mismo)?|ya mismo|enseguida"
        rf"|de inmediato)(?!\w)"
        rf"|(?:ahora|a continuación|primero|ahora mismo),? (?!{_SAYING}\b)\w{{3,}}o (?:el|la|los|las|un|una|este"
        rf"|esta|□)(?!\w)"
        rf"|(?:déjame|déjeme|permíteme|permítame) (?:confirmar|cargar|imprimir|reproducir|recargar|bajar|subir"
        rf"|depurar)(?:lo|la|los|las)?(?!\w)"
        rf"|(?:(?:lo|la|los|las|te|le) )?(?:voy|vamos) (?:{_ADVERB} )?a (?:{_ADVERB} ){{0,2}}{_INFINITIVE}(?:lo|la"
        rf"|los|las|le|te)?(?!\w)"
        rf"|(?:déjame|déjeme|dejame|permíteme|permítame|permiteme) (?:{_ADVERB} ){{0,2}}{_INFINITIVE}(?:lo|la|los"
        rf"|las|le)?(?!\w)"
        rf"|(?:(?:lo|la|los|las|te|le) )?(?:{_INFINITIVE}é|haré (?:eso|esto|el cambio|la consulta|la búsqueda"
        rf"|los cambios|una (?:búsqueda|consulta|copia|prueba))|pondré|obtendré|comenzaré (?:por|con|a)"
        rf"|empezaré (?:por|con|a)|procederé|(?:usaré|utilizaré)(?=.*(?:herramienta|función|comando|búsqueda|api"
        rf"|script|□| para ))|echaré un vistazo)(?!\w)"
        rf"|vuelvo a {_INFINITIVE}(?!\w)|(?:necesito|debo|tengo que) {_INFINITIVE} (?:primero|antes)(?!\w)"
        rf"|(?:(?:ahora|primero),? )(?:necesito|debo|tengo que) {_INFINITIVE}(?!\w)"
        rf"|(?:necesito|debo|tengo que) (?:primero|ahora) {_INFINITIVE}(?!\w)"
        r"|lo primero que (?:haré|voy a hacer)"
        rf"|(?:(?:lo|la|los|las|te|le) )?{_PRESENT}(?!\w)"
        r"|(?:veamos|echemos un|revisemos|verifiquemos|comprobemos|busquemos|abramos|ejecutemos|probemos|miremos"
        r"|leamos|examinemos|analicemos|comencemos|empecemos|consultemos|listemos|exploremos|actualicemos"
        r"|añadamos|agreguemos|recorramos|sigamos|rastreemos|inspeccionemos|corrijamos|instalemos)(?!\w)"
        r"|estoy (?:leyendo|revisando|verificando|comprobando|buscando|abriendo"
        r"|consultando|ejecutando|instalando|actualizando|creando|analizando|descargando)\b(?=.*(?:\bahora\b|…"
        r"|\.\.\.|:$)))"
    ),
    before=(
        r"\w\W+y (?:(?:ahora|luego|entonces),? )?$|\b(?:eu|às|não|você|cada (?:noche|día|semana|mes|hora|mañana"
        r"|vez|lunes)|tras (?:el|la|los|las)|después de(?:l| la| los| las)|próxim[oa]s?|normalmente|habitualmente"
        r"|generalmente|siempre|nunca|jamás|rara vez|raramente|por lo general|a veces|en este paso|para cada"
        r"|por cada|en cada|si|salvo|así lo har|excepto|con tu|con su|cuando|una vez|en cuanto|tan pronto|en caso"
        r"|de ser necesario|si no|a menos|hasta|después de que|tras (?:tu|su)|con (?:tu|su) permiso|dime|díme"
        r"|d[ií]mel[oa]s?|damel[oa]s?|\w*[áéí]\w*me(?:l[oa]s?)?|danos|elige|escoge|selecciona|responde"
        r"|contesta|facilita|proporciona|basta"
        r"|dígame|envíame|envía|envíe|mándame|pásame|dame|deme|avísame|confirma|confirme|comparte|indica|indícame"
        r"|por favor|sube|pega|escribe|supongamos|supón|digamos|imagina|puedes|podrías|deberías|debes|en el futuro"
        r"|de ahora en adelante|a partir de ahora|mañana|dice|escribe|escribió|sería|haría|por ejemplo)\b"
    ),
    behind=(
        r"\b(?:(?<!verificar )(?<!comprobar )(?<!confirmar )(?<!verificaré )(?<!comprobaré )(?<!de )que (?:esto"
        r"|eso|solo|el|la)"
        r"|cómo (?:va|sale|queda|resulta)\w*|qué (?:pasa|tal|puedo)|lo que puedo"
        r"|solo|únicamente|a menudo|normalmente|habitualmente|raramente|rara vez|cualquier (?:error|problema"
        r"|novedad|cambio)|de opinión|ser (?:claro|breve)|mañana|el (?:lunes|martes|miércoles|jueves|viernes"
        r"|sábado|domingo)$|al final|finalmente|por último|después de (?:tu|su)|básico|(?<!y )luego|más tarde"
        r"|más adelante"
        r"|en el futuro|siempre|cada (?:vez|commit|día|noche|semana)|cuando (?:me|tú|usted|lo|quieras|confirmes"
        r"|esté)|si (?:quieres|lo deseas|hace falta|es necesario|me|prefieres|te)|en cuanto|una vez(?! más)"
        r"|un ejemplo"
        r"|ejemplos|de ejemplo|explicar|resumir|aclarar|hasta que|tras tu|próxima vez|después de que)\b"
        r"|^(?!.*\b(?:comp|verif|ver|mir|confirm|revis|averig|sab|determin|examin|investig|valid|prob|busc"
        r"|consult|chequ)\w*(?: \w+){0,3} si\b).*\bsi\b|^(?!.*\b(?:qué|cómo|quién)\b).*\bcuando\b"
    ),
    addressing=(
        r"\b(?:dime|avísame|dímelo|envíame|por favor|confirma|quieres|prefieres|te parece|si quieres|pásame"
        r"|puedes (?:enviar|decir|confirmar)\w*)\b"
    ),
    waiting=(
        r"(?:un (?:momento|segundo|instante)(?:,? por favor)?|(?:por favor,? )?espera(?: un momento)?"
        r"|dame un (?:momento|segundo)|(?:esto|así) (?:me|nos|permitirá|debería|podré|sabré)\b.+)"
    ),
    asking=(
        r"(?:(?:por favor|ahora|luego|después|también|primero|ok|vale|bien|gracias|sí|hola|y|entonces|ahora mismo"
        r"|solo|perfecto)\b,? ){0,4}¿?(?:(?:me )?(?:puedes|podrías|puede|podría) |(?:quiero|necesito|quisiera"
        r"|me gustaría) (?:que )?|ayúdame a |hay que |tienes que |debes |vamos a )?"
        rf"(?:{_INFINITIVE}(?:me|lo|la|los|las|melo|le)?|(?:lee|lea|revisa|revise|revises|verifica|verifique"
        rf"|comprueba|compruebe|busca|busque|busques|búscame|abre|abra|consulta|ejecuta|ejecute|ejecutes|corre"
        rf"|corra|prueba|lanza|compila|despliega|inicia|reinicia|reinicie|instala|instale|actualiza|actualice"
        rf"|actualices|modifica|edita|cambia|cambie|corrige|corrija|arregla|arregle|arregles|ajusta|renombra"
        rf"|reemplaza|elimina|elimine|borra|borre|borres|quita|limpia|crea|cree|crees|agrega|añade|escribe|genera"
        rf"|implementa|aplica|configura|activa|desactiva|apaga|apague|enciende|encienda|pon|ponga|envía|envíe"
        rf"|envíale|manda|mándale|guarda|copia|mueve|analiza|compara|calcula|extrae|convierte|programa|agenda"
        rf"|reserva|lista|descarga|sube|haz|hazlo|continúa|sigue|procede|adelante|mira|migra|optimiza"
        rf"|(?<=quiero que )(?!expl|dig|cuent|resum|describ)\w+[ae]s|refactoriza|averigua|averigüe|encuentra"
        rf"|encuentre|descubre|investiga|investigue|determina|localiza|identifica"
        rf"|diagnostica|depura|soluciona|resuelve|repara|examina|inspecciona|conecta|integra|sustituye|mejora|amplía"
        rf"|(?!expl|dí|cuént|resúm|descr|aclár|enséñ|muéstr|pás|env|mánd)\w*[áéíóú]\w*l[oa]s?))(?!\w)"
    ),
    declining=(
        r"\b(?:explica|explícame|explicar|describe|resume|resúmeme|dime|qué (?:opinas|significa)|(?:redact"
        r"|escrib)\w*(?:me)? (?:un|una|el) (?:correo|mensaje|carta|respuesta|tuit|post|nota)\b"
        r"|(?:escrib|cuent|cuént|enseñ|enséñ|muestr|muéstr)\w* (?:por qué|cómo|qué|cuál)|plan|propuesta"
        r"|no (?:cambies|toques|modifiques|ejecutes|hagas|edites)|sin (?:cambiar"
        r"|ejecutar|tocar|modificar)|solo (?:explica|dime|quiero saber)|opinión|poema|cuento|chiste|historia"
        r"|diferencia)\b"
    ),
    questioning=r"\b(?:por qué|cómo|qué|cuál(?:es)?|dónde|quién|cuándo)\b",
    polite=r"\b(?:puedes|podrías|puede|podría)\b",
    forbidding=(
        r"\bno (?:cambies|toques|modifiques|ejecutes|hagas|edites)\b|\bsin (?:cambiar|ejecutar|tocar|modificar)\b"
    ),
    agreeing=r"sí|si|claro|vale|dale|por favor",
)
