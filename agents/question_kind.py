"""What kind of question it is, told by its words: at no cost, and the same every time.

The rules are written for English; the words that mark a kind in some other languages stand beside
them. A question that no rule knows is a look-up, which most are.
"""

import re
from typing import Literal

Kind = Literal["look-up", "multi-hop", "summarise", "count", "list", "compare"]
"""look-up: one place answers it; multi-hop: several places that lead to each other;
the others need the whole document, or two sides of it."""

KINDS: tuple[Kind, ...] = ("look-up", "multi-hop", "summarise", "count", "list", "compare")

_LONGEST = 1_000  # characters; what is asked stands at the beginning


def kind_of(question: str) -> tuple[Kind, str]:
    """The kind, and the words that told; without any where none did."""
    text = " ".join(question[:_LONGEST].casefold().replace("’", "'").split())
    for kind, rule in _RULES:
        found = rule.search(text)
        if found:
            return kind, found.group().strip(" ,.?!")
    plain = _REPORTED.sub(" ", text)
    links = len(_LINKS.findall(plain))
    if _ASKS.search(plain) and (links >= 2 or (links and _CHAIN.search(plain))):
        return "multi-hop", "one thing described by another"
    return "look-up", ""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_PLURAL_WORD = (
    r"(?!(?:does|perhaps|words|news|happens|means)\b)"
    r"(?:[a-z]{2,}(?:[^suia'\W]s|ies|ses|xes|ches|shes)|people|men|women|children)\b"
)
_PLURAL = (  # "ships …", or "other ships are …": "ship sails …" looks the same but for what follows
    r"(?!(?:of|is|was|does|has|this|his|its|as)\b)"
    r"(?!(?:do|did|are|were|can|could|would|will|should|might|must|had|have)\b)"
    rf"(?:{_PLURAL_WORD}(?! (?:the|an?|his|her|their|its|him|who|to|for|from|with|at|up|down)\b)|"
    rf"(?:\w+ ){{1,2}}?{_PLURAL_WORD}(?= (?:are|were|do|did|have|had|can|could|should|must|may|"
    r"will|would|of|and|there)\b|\?|$))"
)
_TEXT = (
    r"(?:book|novel|story|stories|text|document|report|article|paper|poem|play|contract|essay)s?"
)
_STATED = (  # numbers of these are said at one place, not found by counting
    r"(?:years?|months?|weeks?|days?|hours?|minutes?|miles?|feet|pounds?|dollars?|guineas?|"
    r"shillings?|tons?|acres?|men|people|children|sons|daughters|brothers|sisters|boxes|votes?)"
)

_COUNT = _any(
    r"\bhow often (?!must|should|shall|can|may|has to|have to|need)",
    r"\bhow many times (?:is|are|do|does|in)\b",
    r"\bhow many times .*\b(?:mention|name|appear|occur|use|say|cite)",
    r"\bnumber of times\b",
    r"\bin how many\b",
    r"\bhow many of\b",
    r"\b(?:count|tally)\b (?:the|all|how|every|up)",
    r"^tally\b",
    r"\b(?:total )?number of (?:times|different|\w+ (?:who|that|which|in)|named|\w+ed)\b",
    r"\btotal number\b",
    rf"\bhow many (?!{_STATED}\b).*\b(?:mentioned|named|described|quoted|listed|cited|altogether|"
    rf"in (?:the|this) (?:whole |entire )?(?:{_TEXT}|collection)|occur|appear|deal with)\b",
    r"\b(?:in total|altogether|all told)\b.*\bhow many\b|\bhow many\b.*\b(?:in total|all told)\b",
    r"\bhow many (?:different|distinct|other|separate)\b",
    rf"\bhow many (?:chapters|sections|clauses|tables|figures|characters|{_TEXT}|references)\b",
    rf"\bhow many (?!{_STATED}\b).*\b(?:are|were) there\b",
    rf"\bhow many (?!{_STATED}\b)[a-z]+s (?:do|does)\b(?!.*\b(?:have|has|contains?|use|cost|take))",
    r"\bwie (?:oft|häufig)\b|\bwie viele\b.*\b(?:insgesamt|kommen|gibt es)\b",
    r"\bcombien de (?:fois|\w+ (?:en \w+ )?y a-t-il)|\bcu[áa]ntas veces\b|\bquante volte\b",
    r"\bquantas vezes\b|\bсколько раз\b|多少次|几次|幾次|何回|كم مرة|몇 번|कितनी बार",
)
_COMPARE = _any(
    r"\bcompar(?:e|es|ed|ing|isons?)\b",
    r"^contrast\b|\b(?:compare|and|in) contrast\b",
    r"\bdiffer(?:s|ed|ence|ences|ent from|ently)?\b",
    r"\b(?:versus|vs)\b",
    r"\bin common\b|\balike\b|\bsimilarit(?:y|ies)\b|\bparallels\b",
    r"\b(?:how|are|is|in what ways?) .*\bsimilar\b",
    r"^how (?:do|does) .* relate to\b",
    r"\bdistinguish(?:es|ed)?\b|\bat odds\b|^(?:do|does|did) .*\bagree (?:with|on|about)\b",
    r"\bwhich of the (?:two|three)\b",
    r"^(?:who|which|what|whom)\b.*\b(?:more|less|better|worse|faster|[a-z]{3,}er)\b.*,? .*\bor\b",
    r"^(?:is|are|was|were|does|do|did)\b.* (?:more|less|[a-z]{3,}er)\b.*(?<!other)(?<!rather) than "
    r"(?!\d)",
    r"^(?:does|do|is|are|did)\b.* or (?:the )?.*\b(?:more|most|better)\b",
    r"^(?:is|are|was|were) .*\b(?:like|unlike) (?:the|that of)\b",
    r"\bvergleich\w*|\bunterschied\w*|\bunterscheide\w*|\bgemeinsam\b",
    r"\bdifférences?\b|\bcomparez?\b|\bcompara\w*|\bdiferencias?\b|\bdifferenz\w*|\bconfronta\w*",
    r"\bdiferenças?\b|\bсравни\w*|\bразниц\w*|\bотлича\w*|比较|比較|区别|差异|違い|차이|비교|قارن|الفرق",
)
_SUMMARISE = _any(
    r"\bsumm?ar(?:y|ies|i[sz]e[sd]?|i[sz]ing)\b|\bsum(?:s|med)? (?:up|\w+ up)\b|\btl;?dr\b",
    r"\b(?:overview|gist|synopsis|abstract|recap|précis|nutshell|takeaways?)\b|\bplot\b",
    r"\b(?:main|key|central|major|principal) (?:\w+ )?(?:themes?|arguments?|ideas?|points?|"
    r"messages?|findings|conclusions?|claims?|lessons?)\b|\bthemes\b",
    rf"\bwhat(?:'s| is| are| was) (?:this|the|it) ?(?:whole )?(?:{_TEXT}|it)? ?(?:all )?about\b",
    r"\b(?:moral|message|meaning|lesson) of (?:the|this)\b|'s (?:message|argument|thesis)\b",
    r"\b(?:outline|retell|condense|paraphrase|trace)\b|\bin (?:your own|plain|simple) \w+\b",
    rf"\bexplain (?:the|this) (?:whole )?{_TEXT}\b",
    r"^overall\b|\b(?:all in all|as a whole|on the whole|end of it all)\b",
    rf"\bthroughout(?: the (?:\w+ )?{_TEXT})?[ ?.]*$",
    r"\b(?:over the course|from (?:the )?(?:beginning|start|first) .*to (?:the |his |her )?\w+)\b",
    r"^how (?:do|does|did|is|are|has|have) (?:[\w'’]+ ){1,6}?(?:changed?|develop(?:ed)?|evolved?|"
    r"grow|shift(?:ed)?|portrayed|depicted|presented)\b",
    r"\bdo (?:i|we|you) need to know\b|\bwhat case do(?:es)?\b|\bwhat picture\b|\btrying to say\b",
    r"\bconclusions? do(?:es)?\b|\bwhat do(?:es)? th(?:is|e) \w+ contain\b|\bbullet points\b",
    r"\bdescribe the (?:relation|character)",
    r"\b(?:fasse?|fass)\b.*\bzusammen\b|\bzusammenfass\w*|\bworum geht\b|\bwovon handelt\b",
    r"\brésum\w*|\bde quoi (?:parle|s'agit)\b|\bresum(?:en|ir|a|e el|e la|e este|o)\b",
    r"\bde qué (?:trata|va)\b|\briassum\w*",
    r"\bdi cosa (?:parla|tratta)\b|\bdo que (?:trata|fala)\b|\bо ч[её]м\b|\bкратк\w*|\bрезюм\w*",
    r"总结|總結|概括|摘要|概要|要約|あらすじ|主题|요약|줄거리|لخص|ملخص|सारांश",
)
_LIST = _any(
    r"\b(?:list|enumerate|itemi[sz]e|catalogue)\b",
    r"\b(?:name|find|give|show|tell|quote|mention) (?:me )?(?:all|every|each|the names)\b",
    r"^(?:all|every) (?:of )?the\b",
    rf"\b(?:what|who) (?:are|were) (?:all )?(?:(?:the|his|her|its|their|these|those|\w+'s?) )?"
    rf"(?:[\w'-]+ ){{0,3}}?{_PLURAL_WORD}(?! \w+ing\b)",
    rf"\bwhich {_PLURAL}|^which of the .*\b(?:are|were|have)\b",
    rf"^what (?:other |different )?{_PLURAL}|^what (?:sorts|kinds|types) of\b",
    r"\b(?:welche|nenne|liste)\b (?:alle|\w+(?:en|er)\b)|\bzähle?\b.*\bauf\b|\bauflist\w*",
    r"^(?:liste[zr]?|énumère[z]?|quels sont|quelles sont)\b|\btous les\b|\btoutes les\b",
    r"\benumer[ae]\w*|\bcuáles son\b|\btodos los\b|\btodas las\b|\belenca\w*|\bquali sono\b",
    r"\bquais são\b|\bперечисл\w*|\bкакие\b|列出|列举|列舉|哪些|一覧|挙げ|すべて|모든|나열|اذكر",
)
_RULES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("count", _COUNT),
    ("compare", _COMPARE),
    ("summarise", _SUMMARISE),
    ("list", _LIST),
)
_LINKS = _any(r"(?<!^)\b(?:who|whom|whose|that|which)\b(?!\?)")
_REPORTED = _any(  # "he said that": no thing described by another
    r"\b(?:s[ae]y|says|said|saying|thinks?|thought|told|tells?|knows?|known|believes?|feels?|felt|"
    r"fact|so|such|now|means?|ensures?|sees?|saw|finds?|found|shows?|suggest\w*|claim\w*|argu\w*|"
    r"mention\w*|is|was|doubt|sure|given|all) that\b|\bof the following\b"
)
_ASKS = _any(
    r"^(?:\W*\w++){0,3}?\W*\b(?:who|whom|whose|what|which|where|when|why|how|is|are|was|were|did|"
    r"does|do|if|name|in|of|by|from)\b"
)
_CHAIN = _any(
    r"\b(?:of|the|by|to|from|with) (?:the |a )?\w+ (?:of |to |from )?"
    r"(?:who|whom|whose|that|which)\b",
    r"\bof the \w+(?:'s)? .*\b(?:who|whom|whose|that|which)\b",
    r"\bthe (?:person|man|woman|one|ship|town|city|friend|officer) .*\b(?:who|that|which)\b",
)
