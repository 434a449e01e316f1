"""Tests of features: phrases, stop words, stems and weights, each with the others off."""

from pathlib import Path

import numpy as np
import pytest

from neardup.errors import SettingsError
from neardup.signatures.features import LOG_TF, TF, TF_IDF, FeatureChoices, _logarithms, features_of
from neardup.signatures.fingerprint import fingerprint_of, hamming
from neardup.signatures.idf import ONE, IdfTable
from neardup.text.languages import STOP_WORDS, Stems, language_of, stop_words
from neardup.text.tokens import tokens_of_text

TEXT = "the river runs to the sea and the river floods the running meadows"


def hashes(text: str) -> list[int]:
    found: list[int] = tokens_of_text(text).hashes.tolist()
    return found


def test_presence_is_the_set_of_words() -> None:
    features = features_of(tokens_of_text(TEXT), FeatureChoices())
    assert sorted(features.hashes.tolist()) == sorted(set(hashes(TEXT)))
    assert features.weights is None


def test_phrases_are_ngrams() -> None:
    both = features_of(tokens_of_text(TEXT), FeatureChoices(phrases=(1, 2)))
    pairs = features_of(tokens_of_text(TEXT), FeatureChoices(phrases=(2,)))
    assert len(both) == 9 + 11
    assert len(pairs) == 11
    assert len(features_of(tokens_of_text("one"), FeatureChoices(phrases=(2,)))) == 0


@pytest.mark.parametrize(("weighting", "the", "river"), [(TF, 4, 2), (LOG_TF, 3 * ONE, 2 * ONE)])
def test_weights_by_frequency(weighting: str, the: int, river: int) -> None:
    features = features_of(tokens_of_text(TEXT), FeatureChoices(weighting=weighting))
    assert features.weights is not None
    weights = dict(zip(features.hashes.tolist(), features.weights.tolist(), strict=True))
    assert weights[hashes("the")[0]] == the
    assert weights[hashes("river")[0]] == river


def test_logarithms_are_rounded_the_same_way_everywhere() -> None:
    exact = (1 + np.log2(np.arange(1, 4097))) * ONE
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6
    assert _logarithms()[:5].tolist() == [0, 256, 512, 662, 768]


def test_idf_comes_from_a_frozen_file(tmp_path: Path) -> None:
    table = IdfTable.of([tokens_of_text(text).hashes for text in (TEXT, "the sea", "the town")])
    table.save(tmp_path / "idf.npz")
    loaded = IdfTable.load(tmp_path / "idf.npz")
    assert loaded.checksum == table.checksum
    the, sea, new = loaded.weigh(tokens_of_text("the sea volcano").hashes).tolist()
    assert the < sea < new
    features = features_of(tokens_of_text(TEXT), FeatureChoices(weighting=TF_IDF, idf=loaded))
    assert features.weights is not None
    assert features.weights.min() > 0


def test_a_file_that_is_not_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "idf.npz").write_bytes(b"nonsense")
    with pytest.raises(SettingsError, match="expected a tf-idf table"):
        IdfTable.load(tmp_path / "idf.npz")
    np.savez(tmp_path / "old.npz", version=0, hashes=np.zeros(0), weights=np.zeros(0), unseen=1)
    with pytest.raises(SettingsError, match="version 1, got 0"):
        IdfTable.load(tmp_path / "old.npz")


def test_stop_words_are_removed_before_phrases_are_formed() -> None:
    options = FeatureChoices(phrases=(2,), drop_stop_words=True, language="english")
    kept = features_of(tokens_of_text("the river of the sea"), options)
    bare = features_of(tokens_of_text("river sea"), FeatureChoices(phrases=(2,)))
    assert kept.hashes.tolist() == bare.hashes.tolist()


def test_inflected_forms_have_one_stem() -> None:
    options = FeatureChoices(stem=True, language="english")
    one = features_of(tokens_of_text("connected connections"), options)
    assert one.hashes.tolist() == hashes("connect")
    german = Stems("german")
    assert german.of(tokens_of_text("Häuser")).tolist() == german.of(tokens_of_text("hausern")).tolist()


def test_unknown_languages() -> None:
    with pytest.raises(SettingsError, match="klingon"):
        Stems("klingon")
    with pytest.raises(SettingsError, match="klingon"):
        stop_words("klingon")


@pytest.mark.parametrize("language", STOP_WORDS)
def test_a_language_is_detected_by_its_stop_words(language: str) -> None:
    others = " ".join(f"word{i}" for i in range(30))
    assert language_of(tokens_of_text(STOP_WORDS[language] + " " + others).hashes) == language
    assert language_of(tokens_of_text(others).hashes) is None


def test_similar_documents_have_near_fingerprints_at_every_width() -> None:
    words = [f"word{i}" for i in range(300)]
    for width in (32, 64, 100, 128):
        one, near, far = (
            fingerprint_of(features_of(tokens_of_text(" ".join(text)), FeatureChoices()), width).value
            for text in (words, [*words[:-3], "a", "b", "c"], [f"other{i}" for i in range(300)])
        )
        assert one.bit_length() <= width
        assert hamming(one, near) < width / 6 < hamming(one, far)


def test_likely_flips_are_the_weakest_votes() -> None:
    made = fingerprint_of(features_of(tokens_of_text(TEXT), FeatureChoices()))
    order = np.abs(made.weights[made.likely_flips()])
    assert (np.diff(order) >= 0).all()
