from pathlib import Path

from workbench.words.glossary import GLOSSARY


def test_three_words_are_coined_and_contributing_defines_the_same_ones():
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
    names = text.split("## Names", 1)[1].split("\n## ", 1)[0]
    assert list(GLOSSARY) == ["loop", "thought", "place"]
    assert all(f"**{word}**" in names for word in GLOSSARY)
    assert "workbench/words/glossary.py" in names
