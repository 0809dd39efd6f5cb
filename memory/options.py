"""How memories are made; what an option shapes is made anew when it changes, and nothing else."""

from dataclasses import dataclass
from typing import Literal

from memory.tree_shape import Shape
from serving.model import Ability


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How a document is cut up and shortened.

    Attributes:
        min_words: Fewest words of an episode; the last one, and a short document, may have fewer.
        max_words: Most words of one.
        paginate: "model" asks it for each break; "drift" takes sections and where the chunks'
            vectors turn, without any call.
        gists: "model" lets it shorten; "extract" takes the most central sentences, without a call.
        shape: How the tree branches: as the document's "contents", in "even" groups, or "auto":
            by the contents where they divide it.
        fan_out: Most children of a node.
    """

    min_words: int = 280
    max_words: int = 600
    paginate: Literal["model", "drift"] = "drift"
    gists: Literal["model", "extract"] = "model"
    shape: Shape = "auto"
    fan_out: int = 6

    def __post_init__(self) -> None:
        if self.min_words < 1 or self.max_words < 2 * self.min_words:
            raise ValueError(
                "an episode's most words must be at least twice its fewest, and those at least 1; "
                f"got {self.min_words} to {self.max_words}"
            )
        if self.fan_out < 2:
            raise ValueError(f"a node needs room for at least 2 children; got {self.fan_out}")


def usual_options(ability: Ability, *, max_words: int = 0, fan_out: int = 0) -> MemoryOptions:
    """What suits a model: short episodes for small ones, no prose by tiny ones.

    Args:
        ability: Of the model.
        max_words: Most words of an episode; 0 takes what suits.
        fan_out: Most children of a node; 0 takes the usual.
    """
    most = max_words or (600 if ability == "large" else 250)
    return MemoryOptions(
        min_words=max(1, most * 7 // 15),
        max_words=most,
        paginate="model" if ability == "large" else "drift",
        gists="extract" if ability == "tiny" else "model",
        fan_out=fan_out or MemoryOptions().fan_out,
    )
