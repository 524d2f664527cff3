"""Model configs, as frozen and strictly checked data.

Each family defines its config as a subclass next to its model (`workbench/models/<family>.py`).
Fields have TransformerLens's names wherever it has one, so that `ActivationCache` and readers find
the names that they expect.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

Norm = Literal["LN", "RMS"]
PositionalEmbedding = Literal["standard", "rotary", "relative", "none"]
Activation = Literal["gelu", "gelu_new", "relu", "silu"]
MOST_LOOPS = 10_000
LONGEST_WORD = 200  # characters of a misspelt word that are compared
MANY = 12  # longer lists of words are cut short in error messages


class ConfigError(ValueError):
    """An error for a recipe or config that is invalid."""


class FileError(ValueError):
    """An error for a file that is missing, broken or of the wrong format."""


class StrictModel(BaseModel):
    """A frozen pydantic model that rejects unknown fields and wrong types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def check_at_most(self, most: int, *fields: str) -> None:
        """Reject impossibly large sizes before anything of that size is allocated."""
        for name in fields:
            if getattr(self, name) > most:
                raise ValueError(f"{name}={getattr(self, name):,} must be at most {most:,}")

    def check_at_least(self, least: int, *fields: str) -> None:
        """Reject sizes that are too small; for validators."""
        for name in fields:
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)} must be at least {least}")


class RotaryScaling(StrictModel):
    """Config of scaled rotary positions, for contexts longer than in the original training.

    This is Llama 3.1's `rope_type: llama3`; TransformerLens calls it NTK by parts. Pairs that turn
    less than `low_freq_factor` times within the original context turn `factor` times slower. Pairs
    that turn more than `high_freq_factor` times are unchanged. Those in between are interpolated.
    """

    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_ctx_len: int = 8192

    @model_validator(mode="after")
    def _check_factors(self) -> "RotaryScaling":
        self.check_at_least(1, "factor", "original_ctx_len")
        if not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ValueError(
                f"low_freq_factor={self.low_freq_factor} must lie between 0 and "
                f"high_freq_factor={self.high_freq_factor}"
            )
        return self


class ModelConfig(StrictModel):
    """The config fields that all families share."""

    family: str
    d_vocab: int
    n_ctx: int
    d_model: int
    n_heads: int
    n_layers: int  # untied layers of the looped stack: layers in one loop
    d_mlp: int
    n_key_value_heads: int | None = None  # each shared by query heads; None: one per head
    head_width: int | None = None  # d_head if it is not d_model / n_heads
    use_qk_norm: bool = False  # RMSNorm of each head's query and key, before the rotation
    gated_mlp: bool = False  # act(x W_gate)·(x W_in) instead of act(x W_in)
    n_prelude: int = 0  # layers before the loop
    n_coda: int = 0  # layers after the loop
    act_fn: Activation = "gelu"
    normalization_type: Norm = "RMS"
    eps: float = 1e-5
    positional_embedding_type: PositionalEmbedding = "rotary"
    rotary_base: float = 10_000.0
    rotary_scaling: RotaryScaling | None = None
    # Initial slope of the learned distance bias per position: one for all heads, or one per head
    relative_slope: float | list[float] = 2.0
    tie_embeddings: bool = True
    # Initial standard deviation of W_E's entries. With 1, an embedding has the norm √d_model, as
    # RMSNorm(Φ) does, so that a mixing coefficient of 1 means equal parts.
    embed_std: float = 1.0
    # Scale of tied logits; 1/√d_model compensates for embeddings of standard deviation 1.
    logit_scale: float | Literal["1/sqrt(d_model)"] = "1/sqrt(d_model)"
    # Initial standard deviation of the weights that write into the residual stream, as a multiple
    # of 1/√fan_in: with 1 their output is as large as their input, with 0 the block starts as the
    # identity.
    output_init: float = 1.0
    # The state that every loop starts from: unchanged, or scaled to the norm √d_model without a
    # gain. A pre-norm residual stream grows from loop to loop; with `rms` all loops, including
    # the first, get inputs of the same norm.
    state_norm: Literal["none", "rms"] = "none"
    # Initial value of the learned scale per channel of attention and MLP outputs; None: no scale
    layer_scale: float | None = None
    dropout: float = 0.0  # on patterns, attention and MLP outputs, inside MLP and head; in training
    # How the question is embedded and how the answer is read out; the task sets both
    perception: str = "causal"
    readout: str = "vocabulary"

    @model_validator(mode="after")
    def _check_shape(self) -> "ModelConfig":
        self.check_at_least(1, "d_vocab", "n_ctx", "d_model", "n_heads", "n_layers", "d_mlp")
        self.check_at_least(0, "n_prelude", "n_coda")
        self.check_at_most(1_000, "n_layers", "n_prelude", "n_coda")
        self.check_at_most(10_000, "n_heads")
        self.check_at_most(1_000_000, "d_model", "d_mlp")
        self.check_at_most(100_000_000, "d_vocab", "n_ctx")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout={self.dropout} must lie between 0 and 1")
        if self.head_width is not None:
            self.check_at_least(1, "head_width")
        elif self.d_model % self.n_heads:
            near = max(round(self.d_model / self.n_heads), 1) * self.n_heads
            raise ValueError(
                f"d_model={self.d_model} does not divide into n_heads={self.n_heads} heads; "
                f"the nearest width that does is {near}"
            )
        self._check_key_value_heads()
        slopes = self.relative_slope
        if isinstance(slopes, list) and len(slopes) != self.n_heads:
            raise ValueError(f"relative_slope={slopes} must be one number, or {self.n_heads}")
        if self.positional_embedding_type == "rotary" and self.d_head % 2:
            raise ValueError(f"rotary positions need an even d_head; it is {self.d_head}")
        return self

    def _check_key_value_heads(self) -> None:
        n_kv = self.n_key_value_heads
        if n_kv is None:
            return
        self.check_at_least(1, "n_key_value_heads")
        if self.n_heads % n_kv:
            parts = [n for n in range(1, self.n_heads + 1) if self.n_heads % n == 0]
            near = min(parts, key=lambda n: abs(n - n_kv))
            raise ValueError(
                f"n_heads={self.n_heads} do not divide among n_key_value_heads={n_kv}; "
                f"the nearest number that they do is {near}"
            )

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads if self.head_width is None else self.head_width

    @property
    def readout_scale(self) -> float:
        """The numerical value of `logit_scale`."""
        if self.logit_scale == "1/sqrt(d_model)":
            return float(self.d_model**-0.5)
        return self.logit_scale

    def trained_with(self, loops: str | list[int]) -> "ModelConfig":
        """Return the config with the loops of training stored in it; here the config unchanged."""
        return self

    @property
    def attn_only(self) -> bool:
        """False, as every block has an MLP; TransformerLens's ActivationCache reads this."""
        return False


class LoopedConfig(ModelConfig):
    """Config of a model whose blocks run `n_loops` times."""

    n_loops: int = 2

    @model_validator(mode="after")
    def _check_loops(self) -> "LoopedConfig":
        self.check_at_least(1, "n_loops")
        self.check_at_most(MOST_LOOPS, "n_loops")
        return self


Parsed = TypeVar("Parsed", bound=BaseModel)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid value, or a list of them."""
    choices = sorted(words)
    near = get_close_matches(word[:LONGEST_WORD], choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    if len(choices) > MANY:
        return f"there is {', '.join(choices[:MANY])} … ({len(choices)} in all)"
    return f"there is {', '.join(choices)}" if choices else "there is none"


def parse(cls: type[Parsed], data: Mapping[str, Any], where: str) -> Parsed:
    """Build `cls` from plain data, or raise a one-sentence error that names the wrong field.

    Args:
        cls: The pydantic model to build.
        data: Plain values, as parsed from YAML or JSON.
        where: The name of the data in error messages.

    Raises:
        ConfigError: A field is unknown, missing or of the wrong type.
    """
    try:
        return cls.model_validate(data)
    except ValidationError as error:
        raise ConfigError(_sentence(cls, error, where)) from None


def _sentence(cls: type[BaseModel], error: ValidationError, where: str) -> str:
    # A misspelt field is also reported as missing; the spelling is the more useful error
    problem = min(error.errors(), key=lambda p: p["type"] != "extra_forbidden")
    loc = problem["loc"]
    if problem["type"] == "extra_forbidden":
        near = nearest(str(loc[-1]), _owner(cls, loc[:-1]).model_fields)
        return f"{where} has no field {_dotted(loc)!r}; {near}"
    if problem["type"] == "missing":
        return f"{where} lacks the field {_dotted(loc)!r}"
    message = problem["msg"].removeprefix("Value error, ")
    if _is_choice_of_kinds(cls, loc[:-1]):  # pydantic reports one error per allowed type
        others = [p["msg"] for p in error.errors() if p["loc"][:-1] == loc[:-1]][1:]
        message = " or ".join([message, *(m.removeprefix("Input should be ") for m in others)])
        loc = loc[:-1]
    # If a group of fields conflicts, the message already names those that matter
    value = "" if isinstance(problem["input"], Mapping) else f"={problem['input']!r:.100}"
    path = f"{_dotted(loc)}{value}: " if loc else ""
    return f"{where}: {path}{message}"


def _dotted(path: tuple[int | str, ...]) -> str:
    return ".".join(map(str, path))


def _is_choice_of_kinds(cls: type[BaseModel], path: tuple[int | str, ...]) -> bool:
    """Return whether a path of field names leads to a field of several types (number or string)."""
    field = _owner(cls, path[:-1]).model_fields.get(str(path[-1])) if path else None
    if field is None or get_origin(field.annotation) not in (Union, UnionType):
        return False
    return len([kind for kind in get_args(field.annotation) if kind is not NoneType]) > 1


def _owner(cls: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the nested pydantic model that a path of field names leads to."""
    for part in path:
        field = cls.model_fields.get(str(part))
        kinds = () if field is None else (field.annotation, *get_args(field.annotation))
        nested = [k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)]
        if not nested:
            return cls
        cls = nested[0]
    return cls
