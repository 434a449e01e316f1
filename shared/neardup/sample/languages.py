"""Generated languages: words made of the syllables of a real language, and its most frequent real words.

The pages need not make sense. They need realistic scripts, word lengths and bytes per character.
"""

import random
from dataclasses import dataclass
from functools import cache
from typing import Final

LEXICON: Final = 4000
"""Number of generated words per language, in addition to the common words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Rules for the words of one language and their typography.

    A word has `shortest` to `longest` syllables, each with one of `onsets`, `vowels` and `codas`. A script without
    spaces has an empty `space`. `charset` is the legacy charset that older hosts use.
    """

    code: str
    common: tuple[str, ...]
    onsets: tuple[str, ...]
    vowels: tuple[str, ...]
    codas: tuple[str, ...] = ("",)
    shortest: int = 1
    longest: int = 3
    space: str = " "
    stop: str = "."
    comma: str = ","
    charset: str | None = None


def _split(parts: str) -> tuple[str, ...]:
    """Split at blanks. A hyphen stands for the empty string."""
    return tuple("" if part == "-" else part for part in parts.split())


LANGUAGES: Final = (
    Language(
        code="en",
        common=_split(
            "the of and to in a is that for it was on as with be by at this "
            "are from or an which but not have had"
        ),
        onsets=_split("b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl st str t th tr v w -"),
        vowels=_split("a e i o u ea ee ai ou oo"),
        codas=_split("- - - n r s t l nd rt st m ck ng"),
    ),
    Language(
        code="de",
        common=_split(
            "der die und in den von zu das mit sich des auf für ist im dem "
            "nicht ein eine als auch es an aus"
        ),
        onsets=_split("b br d f g gr h k kl l m n p pf r s sch schl st str t tr v w z -"),
        vowels=_split("a e i o u ä ö ü ei au ie"),
        codas=_split("- - n r t l ch nd rt st ng ß cht"),
        charset="iso-8859-1",
    ),
    Language(
        code="fr",
        common=_split(
            "le de la et les des en un du une que est pour qui dans a par plus "
            "pas au sur ne se ce il sont avec"
        ),
        onsets=_split("b c ch d f g gr h j l m n p pl pr qu r s t tr v -"),
        vowels=_split("a e i o u é è ê ou oi au eu"),
        codas=_split("- - - n r s t l ge que nt re ur"),
        charset="iso-8859-1",
    ),
    Language(
        code="ru",
        common=_split(
            "и в не на я быть он с что а по это она этот к но они мы "
            "весь который из у то за свой от так для"
        ),
        onsets=_split("б в вл г д др ж з к кр л м н п пр р с ст т тр ф х ц ч ш -"),
        vowels=_split("а е и о у ы я ю"),
        codas=_split("- - - н р т л к м с ст ль ть й"),
        charset="koi8-r",
    ),
    Language(
        code="el",
        common=_split("και το της η ο να του με για από που στην είναι τα των οι σε δεν την τον θα ένα μια στο όμως"),
        onsets=_split("β γ δ ζ θ κ κρ λ μ ν π πρ ρ σ στ τ τρ φ χ ψ -"),
        vowels=_split("α ε η ι ο υ ω ά έ ή ί ό ού αι ει"),
        codas=_split("- - - ν ς ρ"),
        charset="iso-8859-7",
    ),
    Language(
        code="ja",
        common=_split(
            "の に は を た が で て と し れ さ ある いる も する "
            "から な こと として や れる など ない この"
        ),
        onsets=_split("日 本 人 年 大 出 中 学 生 国 会 時 行 東 京 山 川 田 水 火 木 金 土 新 高 長 見 "
               "上 下 前 後 間 社 事 者 地 業 方 部 員 立 開 手 力 問 代 明 動 目 通 言 理 体 "
               "主 題 意 不 作 用 度 強 公 持 野 以 思 家 世 多 正 安 院 心 界 教 文 元 重"),
        vowels=_split("- - 駅 所 化 性 的 る い す く み り カ ス ト ル ン"),
        longest=2, space="", stop="。", comma="、", charset="shift_jis",
    ),
    Language(
        code="zh",
        common=_split("的 一 是 在 不 了 有 和 人 这 中 大 为 上 个 国 我 以 要 他 时 来 用 们 到 于 就"),
        onsets=_split("天 地 山 水 火 风 雨 云 花 草 树 木 石 金 银 铁 城 市 村 路 桥 河 海 江 湖 车 "
               "船 书 文 字 报 纸 电 话 机 器 工 农 商 业 学 校 医 院 政 府 法 律 军 队 科 技 "
               "术 经 济 社 会 历 史 民 族 语 言 音 乐 画 图 食 品 茶 酒 衣 服 房 屋 父 母"),
        vowels=_split("- 员 者 家 部 长 力 性 化 区 期 场 所 心 面 点 量"),
        longest=2, space="", stop="。", comma="，", charset="gbk",
    ),
    Language(
        code="th",
        common=_split("ที่ และ ใน ของ มี ได้ การ เป็น จะ ไม่ ให้ ว่า นี้ จาก กับ ก็ แต่ โดย คน หรือ ถึง ไป มา"),
        onsets=_split("ก ข ค ง จ ช ซ ด ต ท น บ ป ผ พ ม ย ร ล ว ส ห อ กร ปร พร"),
        vowels=_split("า ี ู ั ิ ุ ื ะ ำ ่า ้า ึ"),
        codas=_split("- - น ง ก ม ด บ ย ว"),
        space="", stop=" ", comma=" ", charset="tis-620",
    ),
    Language(
        code="ar",
        common=_split("في من على إلى أن هذا التي الذي عن مع كان لا ما هذه بين بعد كل قد لم أو ثم هو هي ذلك عند"),
        onsets=_split("ب ت ج ح خ د ر ز س ش ص ط ع غ ف ق ك ل م ن ه و ي ال م"),
        vowels=_split("ا و ي - -"),
        codas=_split("- - ر ل م ن ة ت د ب ق س"),
        shortest=2, comma="،", charset="windows-1256",
    ),
    Language(
        code="hi",
        common=_split("के में की है को का से और यह पर ने एक हैं नहीं कि इस था तो ही भी कर हो जो या अपने लिए गया"),
        onsets=_split("क ख ग च ज ट ड त थ द ध न प फ ब भ म य र ल व श स ह प्र त्र"),
        vowels=_split("- ा ि ी ु ू े ै ो ौ"),
        codas=_split("- - - न र ल त स क म"),
        shortest=2, stop="।",
    ),
)  # fmt: skip


@cache
def lexicon(language: Language) -> tuple[str, ...]:
    """Return the distinct words of a language: the common ones, then LEXICON generated ones.

    The result is the same in every process.
    """
    draw = random.Random(f"lexicon of {language.code}")  # noqa: S311
    words = dict.fromkeys(language.common)
    while len(words) < len(language.common) + LEXICON:
        syllables = draw.randint(language.shortest, language.longest)
        made = "".join(
            draw.choice(part) for _ in range(syllables) for part in (language.onsets, language.vowels, language.codas)
        )
        words.setdefault(made)
    return tuple(words)
