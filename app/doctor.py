"""What this machine has, how fast it reads, and what would make answers better."""

import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass

from app.models import (
    READING_PACE,
    ChosenModel,
    Pace,
    choose_model,
    keep_pace,
    open_model,
    paces,
)
from app.server_state import prefix_cache
from app.settings import Settings, settings_file
from serving.catalogue import card, catalogue, default_llm
from serving.errors import GistreeError, ModelError
from serving.fetch import installed

EXTRAS = {
    "sentence-transformers": ("sentence_transformers", "any embedder or cross-encoder by name"),
    "provence": ("transformers", "the Provence and OpenProvence pruners"),
    "llama-index": ("llama_index", "PPTX, XLSX, CSV, IPYNB, e-mail and more"),
    "langchain": ("langchain", "the library in LangChain, and its chat models here"),
    "mcp": ("mcp", "gistree mcp"),
    "vllm": ("vllm", "gistree serve"),
    "ui": ("streamlit", "the web page"),
    "postgres": ("psycopg", "a library in PostgreSQL"),
}

_FETCH = "gistree models fetch "


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        what: What was looked at.
        value: What was found.
        advice: What would make it better; empty where nothing would.
    """

    what: str
    value: str
    advice: str = ""

    @property
    def model_to_fetch(self) -> str:
        """The model whose fetching is advised; empty where something else is."""
        advice, known = self.advice.removeprefix(_FETCH), self.advice.startswith(_FETCH)
        return advice if known and " " not in advice else ""


def examine(settings: Settings, *, measure: bool) -> list[Finding]:
    """Looks at everything that bears on answers.

    Args:
        settings: The person's.
        measure: Measure how fast the language model reads (takes up to a minute), and keep it.
    """
    return [
        *_machine(settings),
        *_embedder(settings),
        *_model(settings, measure=measure),
        *_extras(),
    ]


def _machine(settings: Settings) -> list[Finding]:
    import psutil

    memory = psutil.virtual_memory()
    settings.models.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.models).free
    return [
        Finding("Python", f"{platform.python_version()} on {platform.system()}"),
        Finding("processor", f"{os.cpu_count()} cores, {platform.machine()}"),
        Finding("memory", f"{memory.available / 1e9:.1f} of {memory.total / 1e9:.1f} GB free"),
        Finding(
            "disk",
            f"{free / 1e9:.0f} GB free for models in {settings.models}",
            "free some: a model needs 1 to 20 GB" if free < 3e9 else "",
        ),
        Finding("GPU", _gpus()),
        Finding("settings", str(settings_file())),
        Finding("library", settings.library),
    ]


def _gpus() -> str:
    if shutil.which("nvidia-smi") is None:
        return "none seen; everything runs on the processor"
    import subprocess

    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return "; ".join(done.stdout.split("\n")).strip("; ") or "nvidia-smi sees none"


def _embedder(settings: Settings) -> list[Finding]:
    known = catalogue().get(settings.embedder)
    if known is None:
        return [Finding("embedder", f"{settings.embedder} (sentence-transformers)")]
    there = known.is_in(settings.models)
    return [
        Finding(
            "embedder",
            f"{known.title}" + ("" if there else " — not in the cache"),
            "" if there else f"gistree models fetch {known.name}",
        )
    ]


def _model(settings: Settings, *, measure: bool) -> list[Finding]:
    have = [name for name in installed(settings.models) if card(name).kind == "llm"]
    findings = [Finding("models in the cache", ", ".join(have) or "none")]
    try:
        chosen = choose_model(settings)
    except GistreeError as error:
        return [*findings, Finding("language model", "none", str(error))]
    ability = chosen.card.ability if chosen.card else "as its server's"
    better = f"gistree models fetch {default_llm()}" if ability == "tiny" else ""
    findings.append(Finding("language model", f"{chosen.name} ({ability}): {chosen.why}", better))
    findings += _attention(settings, chosen)
    if measure:
        try:
            measure_pace(settings)
        except ModelError as error:
            return [*findings, Finding("reading pace", "not measured", str(error))]
    known = paces(settings).get(chosen.name)
    if known is None:
        return [*findings, Finding("reading pace", "not measured yet", "gistree doctor --measure")]
    reads = known.prompt_tokens_per_s
    slow = (
        "" if reads >= READING_PACE else "take a smaller model, or name a server in GISTREE_MODEL"
    )
    writes = known.completion_tokens_per_s
    pace_text = f"reads {reads:.0f} tokens a second, writes {writes:.0f}"
    return [*findings, Finding("reading pace", pace_text, slow)]


def _attention(settings: Settings, chosen: ChosenModel) -> list[Finding]:
    """How the model's attention reads, and what a server's prefix cache has spared."""
    if chosen.kind == "file":
        return [Finding("attention", "dense: the embedded model reads everything")]
    counted = prefix_cache(chosen.where, settings.api_key) if chosen.kind == "server" else None
    if counted is None:
        whose = "its server does it" if chosen.kind == "server" else f"{chosen.kind} does it"
        return [Finding("attention", f"as {whose}")]
    share = f"{counted.hit / counted.asked:.0%}" if counted.asked else "nothing"
    return [
        Finding("attention", "as the server was started: gistree serve --attention …"),
        Finding("prefix cache", f"{share} of {counted.asked:,} prompt tokens since its start"),
    ]


def measure_pace(settings: Settings) -> Pace:
    """How fast the chosen model reads and writes here, measured now and kept; takes a while.

    Raises:
        ModelError: there is none, or it cannot be opened.
    """
    from serving.speed import measure

    chosen = choose_model(settings)
    model = open_model(settings)
    try:
        pace = measure(model)
    finally:
        model.close()
    keep_pace(settings, chosen.name, pace.prompt_tokens_per_s, pace.completion_tokens_per_s)
    return Pace(pace.prompt_tokens_per_s, pace.completion_tokens_per_s)


def _extras() -> list[Finding]:
    return [
        Finding(f"extra {extra}", "installed")
        if importlib.util.find_spec(module)
        else Finding(f"extra {extra}", "not installed", f"pip install 'gistree[{extra}]' for {use}")
        for extra, (module, use) in EXTRAS.items()
    ]
