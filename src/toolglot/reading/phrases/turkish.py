"""Phrases of narrated stops and requests: Turkish."""

from __future__ import annotations

from toolglot.reading.phrases.record import Phrases

_STEM = (
    r"(?:(?:kontrol|test|analiz|kopya|tercih|derle|takip) ed|bak|ok(?=u)|aç|ar|bul|incel|çalıştır|den|düzelt"
    r"|güncell|değiştir|ekl|sil|kaldır|oluştur|kur|yükl|indir|derl|sorgul|getir|listel|uygul|yapılandır|başlat|kopyal"
    r"|taş|kaydet|kayded|araştır|karşılaştır|hesapl|temizl|doğrul|gözden geçir|göz at|yeniden adlandır|birleştir"
    r"|düzenl|say|tara|tar|çek|durdur|gönder|(?:kod|test|dosya|betik|fonksiyon)\w* yaz)"
)
"""Stems without their last vowel, which changes before some endings."""
_END = r"(?:acağım|eceğim|ıyorum|iyorum|uyorum|üyorum|ayım|eyim|alım|elim)"
PHRASES = Phrases(
    leads="",
    joins="",
    verb_is_last=True,
    announcing=rf"(?<!\w){_STEM}(?!\w*(?:m[ae]y|m[ıiuü]yor|[ae]bil))\w{{0,3}}?{_END}(?:\.\.\.)?$",
    before=r"(?!)",
    behind=(
        r"\b(?:ise|eğer|şayet|(?:iste|dile|gereki|arzu ede)rse\w*|\w+(?:[ıiuüae]r|m[ae]z)s[ae]\w{0,4}|\w+(?:ınca|ince"
        r"|unca|ünce|[dt][ıiuü]ğ[ıiuü]nd[ae]|[dt][ıiuü]kt[ae]n|ır ırmaz|ir irmez|r r?maz)|onay\w*|izn\w*|yarın"
        r"|(?:daha )?sonraki|ileride|gelecekte|bundan (?:sonra|böyle)|artık|her (?:zaman|gün|gece|sefer\w*|hafta)"
        r"|genellikle|genelde|örne[kğ]\w*|açıkla\w*|özet\w*|bekl\w*|hatırla\w*|akl\w*|lütfen|diyor|yaz(?:ıyor|mış)"
        r"|(?:ver|gönder|söyle|paylaş|yaz|seç|onayla)(?:,| ve))\b|\w(?:[ıiuü]n)(?:[ıiuü]z)?,"
    ),
    addressing=r"\b(?:lütfen|söyle\w*|bildirin|gönderin|paylaşın|verin|ister misin\w*|haber)\b",
    waiting=r"(?:bir (?:saniye|dakika|an)(?:,? lütfen)?|(?:lütfen )?(?:bir dakika )?bekleyin|hemen)",
    asking=(
        r"[^?\n]{0,200}?(?<!\w)(?:düzelt|oku|aç|bak|kontrol e[td]|çalıştır|ara|bul|incele|dene|güncelle|değiştir"
        r"|ekle|sil"
        r"|kaldır|oluştur|kur|yükle|indir|derle|test e[td]|listele|uygula|yapılandır|başlat|kopyala|taşı|kaydet"
        r"|gönder"
        r"|analiz e[td]|araştır|karşılaştır|hesapla|temizle|yeniden adlandır|birleştir|düzenle|yaz|yap|kapat"
        r"|devam e[td])"
        r"(?:y?[ıiuü]n(?:[ıiuü]z)?)?(?: lütfen)?$|[^\n]{0,200}?[ıiuüae]r m[ıiuü]s[ıiuü]n(?:[ıiuü]z)?$"
    ),
    declining=(
        r"\b(?:açıkla\w*|anlat\w*|özetle\w*|neden|niçin|niye|nasıl|nedir|ne (?:demek|düşün\w*)|hangi\w*|plan\w*"
        r"|öneri\w*|değiştirme|çalıştırma|dokunma|yapma|fark\w*|fikr\w*|şiir|hikaye|hikâye|fıkra)\b"
    ),
    polite=r"[ıiuüae]r m[ıiuü]s[ıiuü]n",
    forbidding=r"\b(?:değiştirme|çalıştırma|dokunma|yapma)(?:y[ıi]n\w*)?\b",
    agreeing=r"evet|tamam|olur|tabii|lütfen",
)
