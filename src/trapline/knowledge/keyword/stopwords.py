# ruff: noqa: RUF001 (Cyrillic letters are what Russian is written in; people type both apostrophes)
"""Stop words by language."""

from typing import Final

_LISTS: Final = {
    "en": (
        "a about above after again against all am an and any are as at be because been before being"
        " below between both but by can could did do does doing down during each few for from"
        " further had has have having he her here hers him his how i if in into is it its just me"
        " more most my no nor not of off on once only or other our out over own same she should so"
        " some such than that the their them then there these they this those through to too under"
        " until up very was we were what when where which while who whom why will with would you"
        " your"
        # Contractions, whole and by their parts, as words are indexed.
        " aren aren't can't couldn couldn't didn didn't doesn doesn't don don't hadn hadn't hasn"
        " hasn't haven haven't i'd i'll i'm i've isn isn't it's let's ll re shouldn shouldn't that's"
        " there's they're ve wasn wasn't we're weren weren't what's won't wouldn wouldn't you're"
    ),
    "de": (
        "aber als am an auch auf aus bei bin bis bist da damit dann das dass dem den der des dich"
        " die dies diese dieser dieses dir doch du durch ein eine einem einen einer eines er es für"
        " hat hatte ich ihm ihn ihr im in ist ja jede jeder jedes kann kein keine man mich mir mit"
        " nach nicht noch nur ob oder ohne sehr sein seine sich sie sind so über um und uns unter"
        " vom von vor war was weil wenn wer wie wir wird wo zu zum zur zwischen"
    ),
    "fr": (
        "à au aux avec ce ces cette comme dans de des donc du elle en est et eux il ils je la le les"
        " leur leurs lui ma mais me même mes mon ne nos notre nous on ou où par pas plus pour qu que"
        " qui sa sans se ses si son sont sous sur ta te tes ton tu un une vos votre vous y été"
    ),
    "es": (
        "a al algo como con cual cuando de del desde donde el ella ellas ellos en entre era es esa"
        " ese eso esta este esto están fue ha hay la las le les lo los me mi muy más ni no nos o"
        " para pero por porque que qué se ser si sin sobre son su sus sí también te tu un una uno y"
        " ya yo"
    ),
    "it": (
        "a ad ai al alla alle anche che chi ci come con cui da dal dalla dei del della delle di dove"
        " e ed è era gli ha hanno i il in io la le lei lo loro lui ma mi ne nei nel nella no noi non"
        " o per perché più quale quando quella quello questa questo se si sono su sua suo tra tu un"
        " una uno vi voi"
    ),
    "pt": (
        "a ao aos as até com como da das de dela dele do dos e ela elas ele eles em entre era essa"
        " esse esta este eu foi há isso isto já lhe mais mas me mesmo meu minha muito na nas nem no"
        " nos nós não o os ou para pela pelo por qual quando que quem se sem ser seu sua são também"
        " te tem um uma você à"
    ),
    "nl": (
        "aan al als bij dan dat de der deze die dit doch door dus een en er ge geen had heb hebben"
        " heeft hem het hij hoe ik in is ja je kan maar me men met mij na naar niet nog nu of om omdat"
        " onder ons ook op over te tegen toch toen tot u uit van veel voor want waren was wat we wel"
        " wie wij zal ze zich zij zijn zo"
    ),
    "sv": (
        "alla att av blev bli då de dem den denna det dig din du där efter ej eller en er ett från"
        " för ha hade han hans har hon hur här i icke inte jag kan man med men mig min mot mycket ni"
        " nu när och om oss på sig sin som så till under upp ut vad var vi vid är över"
    ),
    "ru": (
        "а без бы был была были было быть в вам вас весь во вот все всех вы где да для до его ее если"
        " есть еще же за и из или им их к как ко когда кто ли мне может мы на над надо не него нет"
        " ни них но о об он она они оно от по под при с со так также там то тоже только ты у уже"
        " чем что чтобы эта эти это я"
    ),
}

STOPWORDS: Final = {
    language: frozenset((*words.split(), *words.replace("'", "’").split()))
    for language, words in _LISTS.items()
}
