"""Phrases of narrated stops and requests: Spanish."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_INFINITIVE = (
    r"(?:leer|silenciar|cerrar|bloquear|pausar|compartir|adjuntar|formatear|detener (?:el|la|los)|parar el|regular"
    r"|atenuar|bajar|ampliar|acotar|refinar|invitar|preguntar a|traducir|transcribir|registrar|etiquetar|clasificar"
    r"|archivar|responder al|reenviar|clonar|sincronizar|comprimir|descomprimir|redimensionar|recalcular|rehacer"
    r"|preparar|terminar de|completar (?:el|la)|redactar|subir|desbloquear|bloquear|bajar|estudiar|evaluar"
    r"|identificar|aislar|rastrear|volver a \w+|conectar|integrar|enlazar|sustituir|restablecer|desactivar|depurar"
    r"|entender|comprender|repasar"
    r"|recorrer|renovar|repetir|ordenar|agrupar|recopilar|publicar|optimizar"
    r"|migrar|restaurar|imprimir|mostrar el contenido|subir|revisar|verificar|comprobar|examinar|inspeccionar|ver"
    r"|mirar|echar (?:un vistazo|una mirada)"
    r"|dar (?:un vistazo|una mirada)|buscar|abrir|consultar|ejecutar|correr|probar|lanzar|compilar|construir"
    r"|desplegar|iniciar|reiniciar|arrancar|instalar|desinstalar"
    r"|actualizar|modificar|editar|cambiar|corregir|arreglar|reparar|ajustar|refactorizar|renombrar|reemplazar"
    r"|reescribir|eliminar|borrar|quitar|limpiar|crear|agregar|añadir|insertar|escribir|generar|implementar|aplicar"
    r"|configurar|activar|desactivar"
    r"|apagar|encender|reproducir|enviar|mandar|guardar|copiar|mover|fusionar|revertir|conectar|navegar|visitar"
    r"|investigar|explorar|analizar|depurar|comparar|contar|calcular|extraer|filtrar|convertir|programar|agendar"
    r"|reservar|listar|obtener|descargar|subir"
    r"|intentar|(?:usar|utilizar)(?=.*(?:herramienta|función|comando|búsqueda|api|script|□| para ))|localizar"
    r"|encontrar|averiguar|proceder|comenzar (?:por|con|a|leyendo|revisando"
    r"|listando|analizando)|empezar (?:por|con|a)|validar|importar|exportar|hacer (?:eso|esto|el cambio|los cambios"
    r"|la consulta|una consulta|una búsqueda)|poner|cargar|traer|recuperar)"
)
_PRESENT = (
    r"(?:leo|silencio (?:el|la)|cierro|bloqueo|pauso|comparto|adjunto|detengo (?:el|la|los)|implemento|mando"
    r"|bajo (?:el|la|los|las)|subo|amplío|traduzco|registro (?:el|la)|preparo|completo"
    r"|estudio el|localizo|exploro|filtro|convierto|programo|reservo|miro (?:el|la|los|las|su|sus|□)|conecto"
    r"|reescribo|integro|enlazo|sustituyo|reemplazo|renombro|restauro"
    r"|publico|ordeno|agrupo|recojo|pongo (?:el|la|los|las)|renuevo|repito|repaso|recorro|reviso|verifico|compruebo"
    r"|examino|busco|abro"
    r"|consulto|ejecuto|corro|pruebo|lanzo|compilo|inicio"
    r"|reinicio|instalo|actualizo|modifico|edito|cambio|corrijo|arreglo|ajusto|elimino|borro|creo (?:el|la|los|las"
    r"|un|una|□)|agrego|añado|escribo (?:el|la|los|las|un|una|□)|genero"
    r"|aplico|configuro|activo|desactivo|apago|enciendo|envío|guardo|copio|muevo|analizo|comparo|calculo|extraigo"
    r"|descargo|listo los|obtengo|procedo (?:a|con)|comienzo (?:por|con|a)|empiezo (?:por|con|a)|intento)"
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
PHRASES = Phrases(
    leads=(
        r"(?:ahora|primero|luego|entonces|a continuación|después|ok|vale|bien|bueno|claro|perfecto|entendido|y|pero"
        r"|siguiente paso|por último|finalmente|de acuerdo|ahora mismo|en primer lugar|para empezar|yo)(?:,? )"
    ),
    joins=r"así que|por lo que|por eso|por tanto|y|pero|entonces|luego",
    announcing=(
        rf"(?:(?:ahora|a continuación|primero|ahora mismo),? (?!{_SAYING}\b)\w{{3,}}o (?:el|la|los|las|un|una|este"
        rf"|esta|□)(?!\w)"
        rf"|(?:déjame|déjeme|permíteme|permítame) (?:confirmar|cargar|imprimir|reproducir|recargar|bajar|subir"
        rf"|depurar)(?:lo|la|los|las)?(?!\w)"
        rf"|(?:(?:lo|la|los|las|te|le) )?(?:voy|vamos) (?:{_ADVERB} )?a (?:{_ADVERB} ){{0,2}}{_INFINITIVE}(?:lo"
        rf"|la|los|las|le|te)?(?!\w)"
        rf"|(?:déjame|déjeme|dejame|permíteme|permítame|permiteme) (?:{_ADVERB} ){{0,2}}{_INFINITIVE}(?:lo|la|los"
        rf"|las|le)?(?!\w)"
        rf"|(?:(?:lo|la|los|las|te|le) )?(?:{_INFINITIVE}é|haré (?:eso|esto|el cambio|la consulta|la búsqueda"
        rf"|los cambios|una (?:búsqueda|consulta|copia|prueba))|pondré|obtendré"
        rf"|comenzaré (?:por|con|a)|empezaré (?:por|con|a)|procederé|(?:usaré|utilizaré)(?=.*(?:herramienta|función"
        rf"|comando|búsqueda|api|script|□| para ))|echaré un vistazo)(?!\w)"
        r"|lo primero que (?:haré|voy a hacer)"
        rf"|(?:(?:lo|la|los|las|te|le) )?{_PRESENT}(?!\w)"
        r"|(?:veamos|echemos un|revisemos|verifiquemos|comprobemos|busquemos|abramos|ejecutemos|probemos|miremos"
        r"|leamos"
        r"|examinemos|analicemos|comencemos|empecemos|consultemos|listemos|exploremos|actualicemos|corrijamos"
        r"|instalemos)(?!\w)"
        r"|estoy (?:leyendo|revisando|verificando|comprobando|buscando|abriendo|consultando|ejecutando|instalando"
        r"|actualizando|creando|analizando|descargando)\b(?=.*(?:\bahora\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\b(?:si|salvo|así lo har|excepto|con tu|con su|cuando|una vez|en cuanto|tan pronto|en caso"
        r"|de ser necesario|si no|a menos|hasta|después de que"
        r"|tras (?:tu|su)|con (?:tu|su) permiso|dime|díme|dígame|envíame|envía|envíe|mándame|pásame|dame|deme"
        r"|avísame|confirma|confirme|comparte|indica|indícame|por favor|sube|pega|escribe|supongamos|supón|digamos"
        r"|imagina|puedes|podrías|deberías|debes|en el futuro|de ahora en adelante|a partir de ahora|mañana|dice"
        r"|escribe|escribió|sería|haría|por ejemplo)\b"
    ),
    behind=(
        r"\b(?:que (?:esto|eso|solo|el|la)|cómo (?:va|sale|queda|resulta)\w*|qué (?:pasa|tal|puedo)|lo que puedo"
        r"|a menudo|normalmente|de opinión|ser (?:claro|breve)|mañana|el (?:lunes|martes|miércoles|jueves|viernes"
        r"|sábado|domingo)$|al final|finalmente|por último"
        r"|después de (?:tu|su)|básico|luego|más tarde|más adelante|en el futuro|siempre|cada (?:vez|commit|día"
        r"|noche|semana)"
        r"|cuando (?:me|tú|usted|lo|quieras|confirmes|esté)|si (?:quieres|lo deseas|hace falta|es necesario|me"
        r"|prefieres|te)|en cuanto|una vez|un ejemplo|ejemplos|de ejemplo|explicar|resumir|aclarar|hasta que"
        r"|tras tu|próxima vez|después de que)\b"
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
        r"|solo|perfecto)\b,? ){0,4}"
        r"¿?(?:(?:me )?(?:puedes|podrías|puede|podría) |(?:quiero|necesito|quisiera|me gustaría) (?:que )?"
        r"|ayúdame a |hay que |tienes que |debes |vamos a )?"
        rf"(?:{_INFINITIVE}(?:me|lo|la|los|las|melo|le)?|(?:lee|lea|revisa|revise|revises|verifica|verifique"
        rf"|comprueba|compruebe|busca|busque|busques|búscame|abre|abra|consulta|ejecuta|ejecute|ejecutes|corre"
        rf"|corra|prueba|lanza|compila|despliega|inicia|reinicia|reinicie|instala|instale|actualiza|actualice"
        rf"|actualices|modifica|edita|cambia|cambie|corrige|corrija|arregla|arregle|arregles|ajusta|renombra"
        rf"|reemplaza|elimina|elimine|borra|borre|borres|quita|limpia|crea|cree|crees|agrega|añade|escribe|genera"
        rf"|implementa|aplica|configura|activa|desactiva|apaga|apague|enciende|encienda|pon|ponga|envía|envíe"
        rf"|envíale|manda|mándale|guarda|copia|mueve|analiza|compara|calcula|extrae|convierte|programa|agenda"
        rf"|reserva|lista|descarga|sube|haz|hazlo|continúa|sigue|procede|adelante|mira|migra|optimiza"
        rf"|refactoriza))(?!\w)"
    ),
    declining=(
        r"\b(?:explica|explícame|explicar|describe|resume|resúmeme|dime|por qué|cómo|qué (?:es|hace|opinas"
        r"|significa)|cuál|plan|propuesta|no (?:cambies|toques|modifiques|ejecutes|hagas|edites)|sin (?:cambiar"
        r"|ejecutar|tocar|modificar)|solo (?:explica|dime|quiero saber)|opinión|poema|cuento|chiste|historia"
        r"|diferencia)\b"
    ),
    polite=r"\b(?:puedes|podrías|puede|podría)\b",
    forbidding=(
        r"\bno (?:cambies|toques|modifiques|ejecutes|hagas|edites)\b|\bsin (?:cambiar|ejecutar|tocar|modificar)\b"
    ),
    agreeing=r"sí|si|claro|vale|dale|por favor",
)
