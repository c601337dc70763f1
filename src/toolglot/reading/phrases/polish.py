"""Phrases of narrated stops and requests: Polish."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_FUTURE = (
    r"(?:sprawdzę|przeczytam|odczytam|wczytam|otworzę|poszukam|wyszukam|znajdę|uruchomię|poprawię|naprawię"
    r"|zmienię|dodam"
    r"|dopiszę|usunę|utworzę|stworzę|zaktualizuję|zainstaluję|przetestuję|spróbuję|zobaczę|obejrzę|przejrzę|zajrzę"
    r"|przyjrzę się|pobiorę|wygeneruję|zaimplementuję|zastosuję|skonfiguruję|włączę|wyłączę|zapiszę|skopiuję"
    r"|przeniosę"
    r"|przeanalizuję|porównam|policzę|obliczę|zbuduję|skompiluję|wdrożę|zacznę od|rozpocznę od|wykonam|zamienię"
    r"|wyczyszczę|zweryfikuję|zbadam|ustalę|przejdę do|przeszukam|wylistuję|połączę|scalę|cofnę|zrestartuję"
    r"|napiszę (?:kod|test\w*|skrypt|funkcję|plik)|wyślę (?:żądanie|zapytanie|wiadomość|e-mail)|odpytam"
    r"|zajmę się tym)"
)
_PRESENT = (
    r"(?:sprawdzam|czytam|otwieram|szukam|uruchamiam|poprawiam|naprawiam|zmieniam|dodaję|usuwam|aktualizuję|instaluję"
    r"|testuję|pobieram|analizuję|przeszukuję|zapisuję|kopiuję|przenoszę|kompiluję|wdrażam|konfiguruję|zaczynam od"
    r"|przechodzę do|tworzę (?:plik|nowy|nową|nowe))"
)
_INFINITIVE = (
    r"(?:sprawdzić|przeczytać|otworzyć|poszukać|znaleźć|uruchomić|poprawić|naprawić|zmienić|dodać|usunąć|utworzyć"
    r"|zaktualizować|zainstalować|przetestować|zobaczyć|obejrzeć|przejrzeć|zajrzeć|pobrać|przeanalizować|porównać)"
)
PHRASES = Phrases(
    leads=(
        r"(?:teraz|najpierw|następnie|potem|zaraz|w takim razie|dobrze|ok|okej|jasne|i|ale|więc|że|już|jeszcze"
        r"|od razu"
        r"|na początek|chwileczkę|to|go|ją|je|jeszcze raz|ponownie|ja)(?:,? )"
    ),
    joins=r"więc|dlatego|i|ale|teraz|najpierw|następnie|potem|to|go",
    announcing=(
        rf"(?:{_FUTURE}(?!\w)|{_PRESENT}(?!\w)|(?:muszę|chcę) (?:najpierw|teraz|jeszcze) {_INFINITIVE}(?!\w)"
        rf"|(?:pozwól|pozwólcie|proszę pozwolić)(?: mi)? (?:najpierw |teraz )?{_INFINITIVE}(?!\w)"
        r"|(?:sprawdźmy|zobaczmy|przeczytajmy|uruchommy|otwórzmy|poszukajmy|spróbujmy|przejrzyjmy|zajrzyjmy)(?!\w))"
    ),
    before=(
        r"\b(?:jeśli|jeżeli|gdy|gdyby|kiedy|jak tylko|skoro tylko|o ile|chyba że|po (?:twoim|twojej|państwa)|za zgodą"
        r"|podaj|podajcie|prześlij|wyślij|napisz|powiedz|daj|wklej|wybierz|potwierdź|wystarczy|proszę(?! czekać"
        r"| pozwolić)"
        r"|możesz|możecie|od teraz|w przyszłości|następnym razem|jutro|później|na przykład|nie|nigdy|pisze|mówi|brzmi"
        r"|napisano|oznacza|ty|pan|pani)\b"
    ),
    behind=(
        r"\b(?:jeśli|jeżeli|gdy|kiedy (?:ty|będziesz|tylko)|jutro|później|zawsze|zwykle|zazwyczaj|za każdym razem"
        r"|codziennie|przykład\w*|po (?:twoim|twojej|potwierdzeniu)|w razie|na życzenie|następnym razem|wkrótce)\b"
    ),
    addressing=(
        r"\b(?:podaj|prześlij|wyślij|powiedz|daj znać|potwierdź|wybierz|czy (?:mam|chcesz|mogę)|proszę(?! czekać))\b"
    ),
    waiting=r"(?:(?:jedną )?(?:chwileczkę|chwilę|chwila|moment|sekundę)(?:,? proszę)?|proszę (?:czekać|o chwilę))",
    asking=(
        r"(?:(?:proszę|teraz|potem|następnie|także|najpierw|ok|dobrze|dzięki|tak|cześć|i|a|więc)\b,? ){0,4}"
        rf"(?:(?:czy )?(?:możesz|mógłbyś|mogłabyś|może pan|może pani) |(?:chcę|potrzebuję),? (?:żebyś |abyś )?)?"
        rf"(?:{_INFINITIVE}|napraw|popraw|sprawdź|przeczytaj|otwórz|poszukaj|znajdź|uruchom|zmień|dodaj|usuń"
        rf"|utwórz|stwórz"
        r"|zaktualizuj|zainstaluj|przetestuj|pobierz|napisz|wygeneruj|zaimplementuj|skonfiguruj|włącz|wyłącz|wyślij"
        r"|zapisz|skopiuj|przenieś|przeanalizuj|porównaj|policz|oblicz|zbuduj|wdróż|wykonaj|zrób|kontynuuj"
        r"|zrefaktoryzuj"
        r"|zoptymalizuj|zarezerwuj)(?:cie)?(?!\w)"
    ),
    declining=(
        r"\b(?:wyjaśnij\w*|wytłumacz\w*|opisz|podsumuj|powiedz|dlaczego|czemu|jak|co (?:to|robi|znaczy|sądzisz)"
        r"|jaki\w*"
        r"|plan\w*|propozycj\w*|nie (?:zmieniaj|ruszaj|uruchamiaj|rób|edytuj)\w*|bez zmian|opini\w*|wiersz|historię"
        r"|żart|różnic\w*)\b"
    ),
    polite=r"\b(?:możesz|mógłbyś|mogłabyś|może pan|może pani)\b",
    forbidding=r"\bnie (?:zmieniaj|ruszaj|uruchamiaj|rób|edytuj)",
    agreeing=r"tak|jasne|dobrze|proszę|okej",
)
