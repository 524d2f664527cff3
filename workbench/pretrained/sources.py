"""Sources of pretrained models: a repository on the Hub, a folder, or a GGUF file in either."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from workbench.pretrained.architectures import PretrainedError, listed
from workbench.pretrained.gguf_head import GgufHead, read_head
from workbench.settings.config import nearest
from workbench.words.tokenizer import PretrainedVocabulary

if TYPE_CHECKING:
    from transformers import PretrainedConfig

HUB_NAME = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)?")
TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")


@dataclass(frozen=True)
class Source:
    """Location of a pretrained model, which transformers loads."""

    name: str  # a folder or a name on the Hub
    gguf_file: str | None
    is_local: bool

    def __str__(self) -> str:
        return self.name if self.gguf_file is None else f"{self.name}/{self.gguf_file}"

    def config(self) -> "PretrainedConfig":
        """Return the model's config, as transformers reads it.

        Raises:
            PretrainedError: The config is missing or broken.
        """
        from transformers import AutoConfig

        with self._reading("config"):
            config = AutoConfig.from_pretrained(self.name, **self._options())
            if self.gguf_file is not None:
                self.head.refine(config)
        return config

    @cached_property
    def head(self) -> GgufHead:
        """Header of the GGUF file, including the settings that transformers does not read."""
        from transformers.utils import cached_file

        assert self.gguf_file is not None
        path = cached_file(self.name, self.gguf_file, local_files_only=self.is_local)
        return read_head(Path(str(path)))

    def weights(self, config: "PretrainedConfig", dtype: torch.dtype) -> dict[str, Tensor]:
        """Return the state dict of transformers' model, without keeping another copy.

        Raises:
            PretrainedError: Weights are missing, left over or broken.
        """
        from transformers import AutoModelForCausalLM

        safe = {} if self.gguf_file else {"use_safetensors": True}
        with self._reading("weights"):
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                self.name,
                config=config,
                dtype=dtype,
                output_loading_info=True,
                **safe,
                **self._options(),
            )
        model, info = loaded
        for problem, keys in (
            ("lacks the weights", info["missing_keys"]),
            ("holds weights without a place:", info["unexpected_keys"]),
        ):
            if keys:
                raise PretrainedError(f"{self} {problem} {listed(sorted(keys))}")
        weights = {name: tensor.detach() for name, tensor in model.state_dict().items()}
        if self.gguf_file is not None:
            self.head.check_read(frozenset(weights))
        # Compare the tensors: transformers may keep a separate head even though the config ties it
        if torch.equal(weights["lm_head.weight"], model.get_input_embeddings().weight):
            del weights["lm_head.weight"]
        not_finite = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
        if not_finite:
            raise PretrainedError(
                f"{self} holds weights that are not finite in {dtype}: {listed(not_finite)}"
            )
        return weights

    def vocabulary(self, size: int) -> PretrainedVocabulary | None:
        """Return the tokenizer for an embedding of `size` rows; None if the source has none.

        Raises:
            PretrainedError: The tokenizer is broken.
        """
        from transformers import AutoTokenizer

        folder = Path(self.name)
        is_folder = self.is_local and self.gguf_file is None
        if is_folder and not any((folder / name).exists() for name in TOKENIZERS):
            return None
        with self._reading("tokenizer"):
            tokenizer = AutoTokenizer.from_pretrained(self.name, **self._options())
        return PretrainedVocabulary(tokenizer, size=size)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"trust_remote_code": False}
        if self.is_local:
            options["local_files_only"] = True
        return options | ({"gguf_file": self.gguf_file} if self.gguf_file else {})

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Turn any exception of another library into a PretrainedError with a one-line message."""
        try:
            yield
        except PretrainedError:
            raise
        except Exception as error:
            if "trust_remote_code" in str(error):
                raise PretrainedError(
                    f"{str(self)!r} brings code of its own (auto_map in its config), which is not "
                    "run here"
                ) from error
            first = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            where = "" if self.is_local else " on the Hub"
            raise PretrainedError(
                f"the {what} of {str(self)!r}{where} cannot be read ({first})"
            ) from error


def find_file(source: str, gguf_file: str | None = None) -> Source:
    """Resolve a name to a file or folder if it exists, otherwise to a name on the Hub.

    Raises:
        PretrainedError: There is no such file or folder, and it does not look like a Hub name; or
            the folder holds no model or several.
    """
    path = Path(source).expanduser()
    if path.is_file():
        if path.suffix != ".gguf":
            raise PretrainedError(f"{source} is no GGUF file; give the folder that it lies in")
        return Source(str(path.parent), path.name, True)
    if path.is_dir():
        return Source(str(path), _gguf_in(path, gguf_file), True)
    is_path = path.is_absolute() or source.startswith((".", "~")) or path.suffix == ".gguf"
    beside = path.parent != Path(".") and path.parent.is_dir()
    if is_path or beside or not HUB_NAME.fullmatch(source):
        here = path.parent.is_dir()
        others = [other.name for other in path.parent.iterdir()] if here else []
        where = f"in {path.parent}" if here else f"and no folder {path.parent}"
        near = f"; {nearest(path.name, others)}" if others else ""
        raise PretrainedError(f"there is no {path.name!r} {where}{near}")
    return Source(source, gguf_file, False)


def find_tokenizer(source: str) -> Source:
    """Resolve a name as `find_file` does, but for a tokenizer: its folder need not hold a model.

    Raises:
        PretrainedError: There is no such file or folder, and it does not look like a Hub name.
    """
    folder = Path(source).expanduser()
    if folder.is_dir() and any((folder / name).exists() for name in TOKENIZERS):
        return Source(str(folder), None, True)
    return find_file(source, None)


def _gguf_in(folder: Path, wanted: str | None) -> str | None:
    """Return the GGUF file of a folder; None if it holds a model in transformers' own format."""
    there = sorted(path.name for path in folder.glob("*.gguf"))
    if wanted is not None:
        if wanted not in there:
            raise PretrainedError(f"{folder} has no {wanted!r}; {nearest(wanted, there)}")
        return wanted
    if (folder / "config.json").exists():
        return None
    if len(there) == 1:
        return there[0]
    if there:
        raise PretrainedError(
            f"{folder} holds several models; say which with gguf_file: {listed(there)}"
        )
    holds = sorted(path.name for path in folder.iterdir())
    raise PretrainedError(
        f"{folder} holds no model: neither config.json nor a GGUF file, "
        + (f"only {listed(holds)}" if holds else "nothing at all")
    )
