"""Adding up generations over shuffled facts on a family: the third experiment of VCoT (Chen 2026).

A chain of facts leads from one person to another, and the query states how many generations the
first is above the second. The published rule only counts generations: a sibling is anyone on the
same level, a child is anyone one level below. Its chains go down to a common descendant and up
again, so that two parents of one child are "siblings". `Kinship.kin` counts the answers that would
be wrong in a real family. A false query is 2 or 4 generations off, so that it has the right parity.
Facts on other people serve as distractors.

    paper     2 to 4 distractors, each relating two of the people outside the chain as parent,
              child or sibling. The query and the count of each relation give the answer away in
              more than four of five rows.
    family    as paper, but chains go up to a common ancestor and down again
    matched   the distractors are a second chain, down and up like the first, and up to two pairs
              of siblings. Rows come in pairs, one true and one false. Both rows ask about the same
              relation, name the same people in the same order, and have equal numbers of parents,
              children and siblings: if the first chain of one row goes up more often, its second
              chain goes up less often. From depth 3, chains begin with a parent and end with a
              child, so that the facts on the two people in the query are alike too, and all local
              features are equal. To tell the two rows apart, one has to follow facts from the
              people in the query, or see how three or more facts connect. Depth 2 has no such
              control: the facts next to these people are the whole chain, so that looking at them
              is the reasoning.

No two rows are equal. Depth is the number of facts in the first chain.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int, Num
from pydantic import model_validator

from workbench.registries import TASKS
from workbench.tasks.batch import Batch, DeepBatch
from workbench.tasks.deep import (
    SPLITS,
    DeepConfig,
    DeepTask,
    Rows,
    Table,
    deep_batch,
    firsts,
    widened,
)
from workbench.tasks.kinship.people import (
    FURTHEST,
    KIN,
    NAMES,
    SPECIALS,
    WORDS,
    Fact,
    kin,
    kinship,
    read_facts,
    solve,
    way,
)
from workbench.tasks.kinship.stories import (
    QUESTION,
    Stories,
    family_stories,
    fits,
    matched_stories,
    paper_stories,
    parse_story,
    write,
)
from workbench.words.vocabulary import WordVocabulary

SPARE = 50  # one extra row is drawn per this many, because some rows may be equal
ATTEMPTS = 5
STORIES = {"paper": paper_stories, "family": family_stories, "matched": matched_stories}


class KinshipConfig(DeepConfig):
    """Sizes of the kinship task; the defaults are the paper's, which has no valid split."""

    train_depths: list[int] = [2, 3, 4, 5]
    valid_depths: list[int] = [2, 3, 4, 5]
    test_depths: list[int] = [2, 3, 4, 5, 6, 7, 8, 9]
    n_train: int = 15_000  # rows per depth, like n_valid and n_test
    n_valid: int = 500
    n_test: int = 2_000
    version: Literal["paper", "family", "matched"] = "paper"  # type: ignore[assignment]
    # cls as in the published code; the paper's text has a readout at the two people in the query
    readout: Literal["cls", "entities"] = "cls"

    @model_validator(mode="after")
    def _check_stories(self) -> "KinshipConfig":
        for depth in sorted({*self.train_depths, *self.valid_depths, *self.test_depths}):
            if depth > FURTHEST or not fits(depth, self.version, self.max_length):
                raise ValueError(
                    f"depth {depth} does not fit {len(NAMES)} people, {FURTHEST} generations and "
                    f"max_length={self.max_length}"
                )
        return self


class Sentences(WordVocabulary):
    """Vocabulary that decodes to plain sentences, without padding, <cls> and <sep>."""

    def decode(self, tokens: Sequence[int]) -> str:
        return super().decode([token for token in tokens if token >= len(SPECIALS)])


@TASKS.register("kinship", example={"n_train": 9, "n_valid": 4, "n_test": 6})
class Kinship(DeepTask):
    """Facts on a family: is one person a given number of generations above another?"""

    Config = KinshipConfig
    cfg: KinshipConfig
    perception = "facts"
    no_and_yes = ("no", "yes")

    def __init__(self, cfg: KinshipConfig, seed: int) -> None:
        super().__init__(cfg, seed)
        self.vocabulary = Sentences(WORDS)

    @property
    def readout(self) -> str:  # type: ignore[override]
        """Where the answer is read: at <cls>, or at the two people in the query."""
        return self.cfg.readout

    @cached_property
    def splits(self) -> Mapping[str, DeepBatch]:
        wanted = {split: self.cfg.rows(split) for split in SPLITS}
        parts: dict[str, list[DeepBatch]] = {split: [] for split in SPLITS}
        for depth in sorted({depth for rows in wanted.values() for depth in rows}):
            sizes = {split: rows[depth] for split, rows in wanted.items() if depth in rows}
            rows = self._draw(depth, list(sizes.values()))
            for split, batch in zip(sizes, rows, strict=True):
                parts[split].append(batch)
        return {split: Batch.cat(batches).trimmed() for split, batches in parts.items()}

    def question(self, text: str) -> DeepBatch:
        facts, query = read_facts(text)
        numbers = [
            [NAMES.index(one), generations, NAMES.index(other)]
            for one, generations, other in (*facts, query)
        ]
        answer = np.array([int(solve(facts, query))])
        story = Stories(
            np.array([numbers[:-1]]), np.array([len(facts)]), np.array(numbers[-1:]), answer
        )
        batch = _batch(story, kinship(facts, query.one, query.other).steps)
        self._check_length(int(batch.length))
        return batch

    def kin(self, split: str) -> dict[str, int]:
        """Count how the two people of a split's true queries would be related in a real family.

        `line` counts pairs of whom one descends from the other, and `siblings` pairs who share a
        parent; in both cases the answer is right for a real family. `collateral` counts pairs who
        share some other ancestor: cousins, aunts or nephews. `no kin` counts pairs who only share a
        descendant.
        """
        batch = self.split(split)
        story = _parsed(batch)
        counts = Counter(dict.fromkeys(KIN, 0))
        for row in batch.answer.nonzero().flatten().tolist():
            facts = [
                Fact(NAMES[one], int(generations), NAMES[other])
                for one, generations, other in story.facts[row, : story.n_facts[row]].tolist()
            ]
            one, _, other = story.query[row].tolist()
            counts[kin(way(facts, NAMES[one], NAMES[other]))] += 1
        return dict(counts)

    def local_features(self, batch: Batch) -> dict[str, Num[np.ndarray, " batch"]]:
        """Return counts, the query, the facts on its two people, and how often people occur.

        No feature combines one fact with another.
        """
        story = _parsed(batch)
        names = np.stack([(story.facts[..., [0, 2]] == n).sum((1, 2)) for n in range(len(NAMES))])
        counts = _counts(story)
        named = ("number of parents", "number of children", "number of siblings", "query")
        source, target = _facts_on(story, 0), _facts_on(story, 2)
        return {
            **dict(zip(named, counts.T, strict=True)),
            "parents less children less query": abs(_surplus(counts)),
            "number of facts": story.n_facts,
            "fact on the first person": source[:, 0],
            "fact on the second person": target[:, 0],
            "place of the fact on the first person": source[:, 1],
            "place of the fact on the second person": target[:, 1],
            "both in one fact": (source[:, 1] == target[:, 1]).astype(np.int64),
            "people named in one fact": (names == 1).sum(0),
            "people named in two facts": (names == 2).sum(0),
            "people named in more facts": (names > 2).sum(0),
        }

    def guesses(self, batch: Batch) -> dict[str, Rows]:
        """Return answers guessed from the relation counts and query, and from facts on its people.

        Counting alone matches the accuracy of the paper's models on the training depths.
        """
        story = _parsed(batch)
        surplus = _surplus(_counts(story))
        guesses = {view: table(VIEWS[view](story)) for view, table in self._tables.items()}
        return guesses | {"parents less children near the query": (abs(surplus) <= 1).astype(int)}

    @cached_property
    def _tables(self) -> dict[str, Table]:
        train = self.splits["train"]
        story, answer = _parsed(train), train.answer.numpy()
        return {view: Table(look(story), answer, self._usual) for view, look in VIEWS.items()}

    def _draw(self, depth: int, sizes: list[int]) -> list[DeepBatch]:
        """Draw different rows of one depth, `sizes` of them per split, without splitting a pair."""
        starts = np.cumsum([0, *(n + n % 2 for n in sizes)])
        n = int(starts[-1])
        for attempt in range(ATTEMPTS):
            rng = np.random.default_rng([self.seed, depth, attempt])
            drawn = n + 2 * (n // SPARE + 1)
            story = STORIES[self.cfg.version](depth, drawn, self.cfg.max_length, rng)
            tokens, _ = write(story)
            fresh = np.flatnonzero(firsts(tokens).reshape(-1, 2).all(1).repeat(2))
            if len(fresh) >= n:
                rows = [fresh[a : a + size] for a, size in zip(starts[:-1], sizes, strict=True)]
                return [self._rows(story, part, depth) for part in rows]
        raise ValueError(f"{n} different stories of depth {depth} are asked for, but too few found")

    def _rows(self, story: Stories, rows: Rows, depth: int) -> DeepBatch:
        return _batch(Stories(*(part[rows] for part in story)), depth, self.cfg.max_length)


def _batch(story: Stories, depth: int, width: int | None = None) -> DeepBatch:
    tokens, length = write(story)
    asked = length - QUESTION
    return deep_batch(
        tokens if width is None else widened(tokens[:, :width], width),
        length,
        story.answer,
        np.full(len(tokens), depth),
        (asked + 2, asked + 7),
    )


def _parsed(batch: Batch) -> Stories:
    return parse_story(batch.tokens.numpy(), batch.length.numpy())


def _counts(story: Stories) -> Int[np.ndarray, "batch 4"]:
    """Return the number of parent, child and sibling facts, and the query's generations."""
    generations, there = story.facts[..., 1], _there(story)
    counts = [((generations == g) & there).sum(1) for g in (1, -1, 0)]
    return np.stack((*counts, story.query[:, 1]), 1)


def _surplus(counts: Int[np.ndarray, "batch 4"]) -> Rows:
    return counts[:, 0] - counts[:, 1] - counts[:, 3]


def _there(story: Stories) -> Bool[np.ndarray, "batch fact"]:
    return np.arange(story.facts.shape[1]) < story.n_facts[:, None]


def _facts_on(story: Stories, who: int) -> Int[np.ndarray, "batch 2"]:
    """Return the relation and index of the first fact that names a person of the query."""
    names = story.facts[..., [0, 2]] == story.query[:, who, None, None]
    place = (names.any(2) & _there(story)).argmax(1)
    return np.stack((story.facts[np.arange(len(place)), place, 1], place), 1)


def _facts_and_query(story: Stories) -> Int[np.ndarray, "batch 3"]:
    relations = (_facts_on(story, 0)[:, 0], _facts_on(story, 2)[:, 0], story.query[:, 1])
    return np.stack(relations, 1)


VIEWS = {
    "counts of relations, query": _counts,
    "query": lambda story: story.query[:, 1:2],
    "facts on the two people, query": _facts_and_query,
}
