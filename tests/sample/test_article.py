"""Tests of generated articles: the effects of edits, and the reported resemblance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.sample.article import (
    Article,
    joined,
    resemblance,
    with_sentence_added,
    with_stretch_rewritten,
    with_words_changed,
    write,
)
from neardup.sample.languages import LANGUAGES, Language, lexicon
from neardup.sample.vocabulary import PARAGRAPH, vocabulary

ENGLISH = vocabulary(LANGUAGES[0], 0)


def shingles(article: Article) -> set[tuple[int, ...]]:
    words = article.vocabulary.words(article.forms).tolist()
    return set(zip(words, words[1:], words[2:], strict=False))


def naive_resemblance(a: Article, b: Article) -> float:
    return len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b))


@given(seed=st.integers(0, 2**32), words=st.integers(20, 400), share=st.floats(0.01, 0.9))
def test_the_reported_resemblance_is_that_of_the_sets_of_three_words(seed: int, words: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    article = write(ENGLISH, rng, words)
    for changed in (
        with_words_changed(article, rng, max(1, int(share * words))),
        with_sentence_added(article, rng, 8),
        with_stretch_rewritten(article, rng, share),
        write(ENGLISH, rng, words),
        article,
    ):
        assert resemblance(article, changed) == pytest.approx(naive_resemblance(article, changed))


def test_changed_words_are_capitalized_like_the_words_that_they_replace() -> None:
    rng = np.random.default_rng(1)
    article = write(ENGLISH, rng, 300)
    changed = with_words_changed(article, rng, 300)
    assert len(changed) == len(article)
    assert [text.count(".") for text in (article.text, changed.text)] == [article.text.count(".")] * 2
    assert resemblance(article, changed) < 0.5


def test_a_part_of_a_joined_article_is_the_article() -> None:
    rng = np.random.default_rng(2)
    first, second = write(ENGLISH, rng, 100), write(ENGLISH, rng, 50)
    assert joined([first, second]).part(100, 150).text == second.text


def test_sentences_start_with_a_capital_and_end_with_a_period() -> None:
    text = write(ENGLISH, np.random.default_rng(3), 400).text
    for sentence in text.replace(PARAGRAPH, " ").split(". ")[:-1]:
        assert sentence[0].isupper(), sentence
    assert text.endswith("." + PARAGRAPH)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.code)
def test_pages_of_a_topic_share_words_but_not_phrases(language: Language) -> None:
    rng = np.random.default_rng(4)
    words = vocabulary(language, 3)
    a, b = write(words, rng, 1000), write(words, rng, 1000)
    shared = np.intersect1d(words.words(a.forms), words.words(b.forms)).size
    assert shared > 100
    assert resemblance(a, b) < 0.05


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.code)
def test_the_words_of_a_language_can_be_encoded_in_its_old_charset(language: Language) -> None:
    words = lexicon(language)
    assert len(set(words)) == len(words)
    if language.charset is not None:
        for word in words:
            assert word.encode(language.charset).decode(language.charset) == word


def test_common_words_are_frequent() -> None:
    drawn = ENGLISH.words(write(ENGLISH, np.random.default_rng(5), 20_000).forms)
    counts = np.bincount(drawn, minlength=ENGLISH.size)
    assert counts[0] > 10 * counts[100:200].mean()
    assert counts[:27].sum() / counts.sum() == pytest.approx(0.35, abs=0.05)
