"""Phrases of narrated stops and requests: Indonesian."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_ROOT = (
    r"(?:baca|cek|periksa|tinjau|lihat|cari|telusuri|temukan|buka|jalankan|uji|coba|bangun|kompilasi|pasang|instal"
    r"|perbarui|ubah|edit|ganti|perbaiki|sesuaikan|hapus|bersihkan|buat|tambahkan|sisipkan|tulis|hasilkan|terapkan"
    r"|atur|konfigurasi|aktifkan|nonaktifkan|matikan|nyalakan|kirim|simpan|salin|pindahkan|gabungkan|kembalikan"
    r"|unduh|unggah|ambil|analisis|bandingkan|hitung|ekstrak|konversi|jadwalkan|pesan|daftar|verifikasi|pastikan"
    r"|mulai ulang|muat ulang|restart|eksekusi|lacak|selidiki|pelajari|identifikasi)"
)
_VERB = (
    r"(?:membaca|mengecek|memeriksa|meninjau|melihat|mencari|menelusuri|menemukan|membuka|menjalankan|menguji|mencoba"
    r"|membangun|mengompilasi|memasang|menginstal|memperbarui|mengubah|mengedit|mengganti|memperbaiki|menyesuaikan"
    r"|menghapus|membersihkan|membuat|menambahkan|menyisipkan|menulis (?:file|berkas|kode|skrip|tes|ulang|□)|menulis"
    r"|menghasilkan|menerapkan|mengatur|mengonfigurasi|mengaktifkan|menonaktifkan|mematikan|menyalakan|mengirim"
    r"|menyimpan|menyalin|memindahkan|menggabungkan|mengembalikan|mengunduh|mengunggah|mengambil|menganalisis"
    r"|membandingkan|menghitung|mengekstrak|mengonversi|menjadwalkan|memesan|mendaftar|memverifikasi|memastikan"
    r"|me-restart|memulai ulang|memuat ulang|mengeksekusi|melacak|menyelidiki|mempelajari|mengidentifikasi|mengimpor"
    r"|mengekspor|memvalidasi|melakukan (?:pencarian|perubahan|pengecekan|pemeriksaan|pengujian)"
    r"|menggunakan(?=.*(?:alat|fungsi|perintah|api|skrip|□| untuk ))|memulai dengan|mulai dengan|mengimplementasikan"
    r"|menelaah|mengecek ulang)"
)
_ADVERB = r"(?:sekarang|segera|dulu|terlebih dahulu|langsung|juga|lalu|kemudian|coba|mulai|akan|lanjut)"
PHRASES = Phrases(
    leads=(
        r"(?:sekarang|pertama|pertama-tama|selanjutnya|berikutnya|kemudian|lalu|setelah itu|baik|baiklah|oke|ok|siap"
        r"|tentu|nah|dan|tapi|jadi|terakhir|sebentar|langkah berikutnya|langkah selanjutnya|untuk memulai)(?:,? )"
    ),
    joins=r"jadi|maka|dan|tapi|lalu|kemudian|sehingga|karena itu",
    announcing=(
        rf"(?:(?:saya|aku|kita) (?:{_ADVERB} ){{0,3}}(?:akan (?:{_ADVERB} ){{0,2}})(?:{_VERB}|{_ROOT})(?:nya)?(?!\w)"
        rf"|(?:saya|aku) (?:{_ADVERB} ){{0,2}}(?:{_VERB}|{_ROOT})(?:nya)?(?!\w)(?=.*(?:\bsekarang\b|\bdulu\b"
        rf"|\bsegera\b"
        rf"|\bterlebih dahulu\b|…|\.\.\.|:$))"
        rf"|(?:sekarang|selanjutnya|berikutnya|pertama|pertama-tama|kemudian),? (?:saya|aku"
        rf"|kita) (?:{_ADVERB} ){{0,2}}"
        rf"(?:{_VERB}|{_ROOT})(?:nya)?(?!\w)"
        rf"|(?:biarkan saya|izinkan saya|biar saya|biar aku|perkenankan saya) (?:{_ADVERB} ){{0,2}}(?:untuk )?"
        rf"(?:{_VERB}|{_ROOT})(?:nya)?(?!\w)"
        rf"|(?:mari|ayo) (?:kita )?(?:{_ADVERB} ){{0,2}}(?:{_VERB}|{_ROOT})(?:nya)?(?!\w)"
        rf"|(?:saya|aku) (?:perlu|harus) (?:{_ADVERB} ){{0,2}}(?:{_VERB})(?:nya)?(?!\w)"
        rf"|(?:saya|aku) (?:sedang )(?:{_VERB})(?:nya)?(?!\w)(?=.*(?:\bsekarang\b|…|\.\.\.|:$)))"
    ),
    before=(
        r"\b(?:jika|kalau|bila|apabila|ketika|setelah (?:anda|kamu|itu anda)|begitu|kecuali|sampai|seandainya"
        r"|misalkan"
        r"|misalnya|contohnya|andaikan|tolong|mohon|silakan|beri|berikan|beritahu|kirimkan|kirim|bagikan"
        r"|tunjukkan|pilih|jawab|sebutkan|cukup|kasih|tempel|konfirmasi"
        r"|anda (?:bisa|dapat|perlu|harus)|kamu (?:bisa|dapat|perlu|harus)|dengan izin|di masa depan|mulai sekarang"
        r"|ke depannya|besok|nanti|mengatakan|menulis bahwa|berkata|tidak|bagaimana|cara)\b"
    ),
    behind=(
        r"\b(?:jika|kalau|bila|apabila|setelah (?:anda|kamu|konfirmasi)|begitu|besok|nanti|selalu|setiap (?:kali|hari"
        r"|malam|minggu|commit)|di masa depan|ke depannya|lain kali|contoh|penjelasan|ringkasan|sampai|biasanya"
        r"|sering"
        r"|bahwa (?:ini|itu|anda)|ketika (?:anda|kamu)|saat (?:anda|kamu) (?:siap|mau|konfirmasi)|bila perlu"
        r"|jika perlu"
        r"|dasar-dasar|pada hari|(?:senin|selasa|rabu|kamis|jumat|sabtu|minggu)$)\b"
        r"|^(?!.*\b(?:mengapa|kenapa|apakah)\b.*\btidak\b).*\btidak\b"
    ),
    addressing=(
        r"\b(?:beri tahu|beritahu|kabari|tolong|mohon|silakan|kirimkan|apakah (?:anda|kamu)|maukah|bolehkah|bisakah"
        r"|konfirmasi|jika (?:anda|kamu))\b"
    ),
    waiting=(
        r"(?:(?:mohon |tolong )?(?:tunggu|harap tunggu)(?: sebentar)?|sebentar(?: ya)?|mohon tunggu sebentar"
        r"|(?:ini|itu) (?:akan|seharusnya|mungkin)\b.+)"
    ),
    asking=(
        r"(?:(?:tolong|mohon|coba|sekarang|lalu|kemudian|juga|pertama|ok|oke|baik|terima kasih|ya|halo|hai|dan|jadi"
        r"|silakan)\b,? ){0,4}(?:(?:bisakah|bisa|dapatkah|maukah) (?:kamu|anda)? ?(?:tolong )?|(?:saya|aku) (?:ingin"
        r"|mau|butuh|perlu) (?:kamu |anda )?(?:untuk )?|bantu (?:saya |aku )?(?:untuk )?"
        r"|(?:kamu|anda) (?:harus|perlu) )?"
        rf"(?:{_VERB}|{_ROOT}|lanjutkan|teruskan|lakukan|kerjakan|optimalkan|migrasikan|urutkan|setel)(?:lah)?(?!\w)"
    ),
    declining=(
        r"\b(?:jelaskan|menjelaskan|uraikan|ringkas|rangkum|mengapa|kenapa|bagaimana|apa (?:itu|arti|maksud|pendapat"
        r"|bedanya|yang)|rencana|usulan|jangan|tanpa (?:mengubah|menjalankan|menyentuh)|hanya (?:jelaskan|ingin tahu)"
        r"|pendapat|puisi|cerita|lelucon|perbedaan)\b"
    ),
    polite=r"\b(?:bisakah|bisa|dapatkah|maukah)\b",
    forbidding=(
        r"\bjangan (?:ubah|jalankan|sentuh|edit|lakukan|mengubah|menjalankan)\b"
        r"|\btanpa (?:mengubah|menjalankan|menyentuh)\b"
    ),
    agreeing=r"ya|iya|oke|ok|okay|baik|tentu|silakan|lanjut",
)
