"""The language of a page: the one it declares, else the one its words are in."""

import re

from turbohtml.detect import LanguageDetection, detect_language

_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_SURE_ENOUGH = LanguageDetection(threshold=0.6)
_MIN_LETTERS = 40
_SAMPLE = 3_000
# Words that make up a fifth of any English text, and of no other. To count them takes a tenth of
# the time that the detector takes, and most pages are in English.
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        "the and to that with are by be this from which as on it you of not if when can has its is for",
    )
)
# How much of a text is looked at, how many words that must have, and the share that are common. Of
# more words fewer need be: pages begin with headings, code and lists of contents.
_LOOKS = ((1_000, 40, 1 / 6), (_SAMPLE, 40, 1 / 8))
# ISO 639-3, which the detector speaks, to the two-letter codes that pages declare.
_TWO_LETTERS = dict(
    pair.split("=")
    for pair in re.findall(
        r"\S+",
        "afr=af aka=ak amh=am ara=ar arb=ar aze=az azj=az bel=be ben=bn bul=bg cat=ca ces=cs cmn=zh"
        " cym=cy dan=da deu=de ell=el eng=en epo=eo est=et eus=eu fas=fa pes=fa fin=fi fra=fr"
        " gle=ga glg=gl guj=gu hau=ha heb=he hin=hi hrv=hr hun=hu hye=hy ibo=ig ind=id isl=is"
        " ita=it jav=jv jpn=ja kan=kn kat=ka kaz=kk khm=km kin=rw kor=ko kur=ku kmr=ku lao=lo"
        " lat=la lav=lv lvs=lv lit=lt mal=ml mar=mr mkd=mk mlg=mg mlt=mt mon=mn msa=ms zlm=ms"
        " mya=my nep=ne nld=nl nob=nb nor=no nno=nn nya=ny ori=or ory=or orm=om pan=pa pol=pl"
        " por=pt ron=ro run=rn rus=ru sin=si slk=sk slv=sl sna=sn som=so spa=es sqi=sq srp=sr"
        " sun=su swa=sw swe=sv swh=sw tam=ta tel=te tgl=tl tha=th tuk=tk tur=tr uig=ug ukr=uk"
        " urd=ur uzb=uz uzn=uz vie=vi xho=xh ydd=yi yid=yi yor=yo zho=zh zul=zu",
    )
)


def declared_language(*candidates: str | None) -> str | None:
    """The first of some declarations that is a language tag; `en_US` becomes `en-US`."""
    for candidate in candidates:
        match = _TAG.match((candidate or "").strip())
        if match:
            return match.group().replace("_", "-")
    return None


def detected_language(text: str) -> str | None:
    """The language that a text is written in, if there is enough of it to tell."""
    if _is_plainly_english(text):
        return "en"
    sample = text[:_SAMPLE]
    if sum(map(str.isalpha, sample[:400])) < _MIN_LETTERS:
        return None
    found = detect_language(sample, _SURE_ENOUGH).language
    return _TWO_LETTERS.get(found, found) if found else None


def _is_plainly_english(text: str) -> bool:
    for letters, fewest, share in _LOOKS:
        words, common = _common_words(text, letters)
        if words >= fewest and common >= share * words:
            return True
    return False


def _common_words(text: str, letters: int) -> tuple[int, int]:
    """How many words a text has among its first letters, and how many of them are common ones."""
    words = text[:letters].lower().split()
    return len(words), sum(map(_ENGLISH.__contains__, words))
