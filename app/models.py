"""Which models are used: what the person chose, else the best that this machine has."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from app.settings import Settings
from retrieval.types import Embedder
from serving.ability import ability_of
from serving.catalogue import ModelCard, card, catalogue, default_llm, fallback_llm
from serving.errors import FetchFailed, ModelNotFound, UnknownName
from serving.fetch import OnBytes, fetch, installed
from serving.model import LanguageModel

log = logging.getLogger(__name__)

READING_PACE = 8.0
"""Prompt tokens a second below which a model is too slow to wait for (a 700-token prompt: 90 s)."""

WINDOW = 8_192
"""Tokens of the window that a local model is opened with: its memory grows with it."""

USUAL_SERVERS = {
    "vLLM": "http://127.0.0.1:8000",
    "llama.cpp": "http://127.0.0.1:8080",
    "Ollama": "http://127.0.0.1:11434",
    "LM Studio": "http://127.0.0.1:1234",
}


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A language model to open.

    Attributes:
        kind: A file for llama.cpp, a server, a chat model of LangChain's, or vLLM in this process.
        where: Path, address, "provider:model", or what vLLM loads.
        name: Of the model.
        why: In words, for the person.
        card: What the catalogue says of it, if it knows it.
    """

    kind: Literal["file", "server", "langchain", "vllm"]
    where: str
    name: str
    why: str
    card: ModelCard | None = None


def choose_model(settings: Settings) -> ChosenModel:
    """What the person set; else a server on a usual local port; else the best in the cache.

    Raises:
        ModelNotFound: there is none; the message says how to get one.
    """
    wanted = settings.model
    if wanted != "auto":
        return _named(wanted, settings)
    for maker, url in USUAL_SERVERS.items():
        name = _first_model(url)
        if name:
            return ChosenModel("server", url, name, f"a server answers at {url} ({maker})")
    have = [card(name) for name in installed(settings.models) if card(name).kind == "llm"]
    if have:
        best = max(have, key=lambda c: (_can_run(c, settings), _rank(c)))
        why = "the best in the model cache that this machine reads fast enough with"
        return _file(best, settings, why)
    raise ModelNotFound(
        "there is no language model yet; fetch the default (1.1 GB): "
        f"gistree models fetch {default_llm()} — or name a server: GISTREE_MODEL=http://host:8000"
    )


def _named(wanted: str, settings: Settings) -> ChosenModel:
    if wanted.startswith(("http://", "https://")):
        url, _, name = wanted.partition("#")
        return ChosenModel("server", url, name, "you chose this server")
    if wanted.startswith("langchain:"):
        where = wanted.removeprefix("langchain:")
        return ChosenModel("langchain", where, wanted, "you chose this chat model of LangChain's")
    if wanted.startswith("vllm:"):
        where = wanted.removeprefix("vllm:")
        known = catalogue().get(where)
        if known is not None and known.vllm:
            return ChosenModel("vllm", known.vllm, where, "you chose vLLM in this process", known)
        return ChosenModel("vllm", where, where, "you chose vLLM in this process")
    if wanted.endswith(".gguf"):
        path = Path(wanted).expanduser()
        return ChosenModel("file", str(path), path.stem, "you chose this file")
    known = card(wanted)
    if known.kind != "llm":
        llms = (name for name, c in catalogue().items() if c.kind == "llm")
        raise UnknownName("language model", wanted, llms)
    if not known.is_in(settings.models):
        raise ModelNotFound(
            f"the model {wanted} is not in the cache; fetch it: gistree models fetch {wanted}"
        )
    return _file(known, settings, "you chose it")


def _file(known: ModelCard, settings: Settings, why: str) -> ChosenModel:
    return ChosenModel("file", str(known.paths(settings.models)[0]), known.name, why, known)


def open_model(settings: Settings) -> LanguageModel:
    """The language model; loading one from a file takes seconds.

    Raises:
        ModelNotFound: there is none.
        ModelUnavailable: the server that was named does not answer.
        MissingExtra: a chat model of LangChain's or vLLM was named, and the extra is not installed.
    """
    chosen = choose_model(settings)
    log.info("model name=%s where=%s why=%s", chosen.name, chosen.where, chosen.why)
    if chosen.kind == "server":
        from serving.backends.openai import OpenAIServer

        known = next((c for c in catalogue().values() if chosen.name in (c.vllm, c.name)), None)
        return OpenAIServer(
            chosen.where,
            model=chosen.name,
            api_key=settings.api_key,
            ability=known.ability if known else ability_of(chosen.name),
        )
    if chosen.kind == "langchain":
        from serving.backends.langchain import LangChainModel

        return LangChainModel(chosen.where)
    if chosen.kind == "vllm":
        from serving.backends.vllm import Vllm

        return Vllm(
            chosen.where,
            name=chosen.name,
            ability=chosen.card.ability if chosen.card else ability_of(chosen.where),
            context_window=chosen.card.window if chosen.card else 0,
        )
    from serving.backends.llamacpp import LlamaCpp

    return LlamaCpp(
        Path(chosen.where),
        name=chosen.name,
        ability=chosen.card.ability if chosen.card else "small",
        context_window=min(WINDOW, chosen.card.window) if chosen.card else WINDOW,
        num_threads=settings.threads,
    )


def open_embedder(settings: Settings) -> Embedder:
    """The embedder: one of the catalogue's, or any of sentence-transformers by name or path.

    Raises:
        ModelNotFound: it is not in the cache.
        MissingExtra: it needs the extra sentence-transformers.
    """
    known = catalogue().get(settings.embedder)
    if known is not None and known.files[0].path.endswith(".onnx"):
        from retrieval.onnx_embedder import OnnxEmbedder

        if not known.is_in(settings.models):
            raise ModelNotFound(
                f"the embedder {known.name} is not in the cache ({settings.models}); fetch it: "
                f"gistree models fetch {known.name}"
            )
        model, tokenizer, *_ = known.paths(settings.models)
        return OnnxEmbedder(
            model,
            tokenizer,
            known.name,
            max_tokens=known.window,
            num_threads=settings.threads or None,
        )
    from retrieval.sentence_transformers_embedder import SentenceTransformersEmbedder

    where = known.paths(settings.models)[0].parent if known else settings.embedder
    return SentenceTransformersEmbedder(str(where))


def missing_models(settings: Settings) -> tuple[str, ...]:
    """Names of the models of the catalogue that answering needs and that are not here."""
    missing = []
    known = catalogue().get(settings.embedder)
    if known is not None and not known.is_in(settings.models):
        missing.append(known.name)
    try:
        choose_model(settings)
    except ModelNotFound:
        wanted = default_llm() if settings.model == "auto" else settings.model
        if wanted in catalogue():
            missing.append(wanted)
    return tuple(missing)


def size_of(name: str) -> int:
    """Bytes of a model of the catalogue."""
    return card(name).size_bytes


def ensure_models(
    settings: Settings,
    *,
    say: Callable[[str], None],
    bar: Callable[[str], AbstractContextManager[OnBytes]],
) -> None:
    """Fetches what is needed to answer, without asking: the embedder and a language model.

    Args:
        settings: Which models.
        say: Told what is fetched and why.
        bar: Shows the progress of one model by name.
    """

    def get(name: str) -> None:
        model = card(name)
        say(f"fetching {model.title} ({model.size_bytes / 1e6:,.0f} MB, {model.licence}) …")
        with bar(name) as show:
            fetch(name, settings.models, on_progress=show)

    for name in missing_models(settings):
        if card(name).kind != "llm":
            get(name)
    try:
        choose_model(settings)
        return
    except ModelNotFound:
        wanted = default_llm() if settings.model == "auto" else settings.model
    try:
        get(wanted)
    except FetchFailed as error:
        if wanted != default_llm():
            raise
        say(f"{error}\nTaking the smallest model instead: it will often find nothing, or wrongly.")
        get(fallback_llm())


def _first_model(url: str) -> str:
    """Name of the first model that an OpenAI-compatible server lists; empty where none answers."""
    import httpx

    try:
        reply = httpx.get(f"{url}/v1/models", timeout=0.3, trust_env=False)
        listed = reply.json()["data"] if reply.status_code == 200 else []
        return str(listed[0]["id"]) if listed else ""
    except (httpx.HTTPError, ValueError, LookupError, TypeError, RecursionError):
        return ""


# ---- pace: how fast this machine reads with a model, measured once -----------------------------


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a model reads and writes here."""

    prompt_tokens_per_s: float
    completion_tokens_per_s: float


_PACES = TypeAdapter(dict[str, Pace])


def _pace_file(settings: Settings) -> Path:
    return settings.models / "pace.json"


def paces(settings: Settings) -> dict[str, Pace]:
    """Measured paces by model; none where the file that keeps them is absent or damaged."""
    try:
        return _PACES.validate_json(_pace_file(settings).read_bytes())
    except (OSError, ValueError):
        return {}


def keep_pace(settings: Settings, name: str, prompt_per_s: float, completion_per_s: float) -> None:
    """Keeps a measured pace."""
    kept = paces(settings)
    kept[name] = Pace(round(prompt_per_s, 1), round(completion_per_s, 1))
    _pace_file(settings).write_bytes(_PACES.dump_json(kept, indent=1))


def _can_run(model: ModelCard, settings: Settings) -> bool:
    """Whether it fits the memory and, where its pace is known, reads fast enough."""
    import psutil

    if model.size_bytes * 1.3 > psutil.virtual_memory().total:
        return False
    known = paces(settings).get(model.name)
    return known is None or known.prompt_tokens_per_s >= READING_PACE


def _rank(model: ModelCard) -> tuple[int, int]:
    return (["tiny", "small", "large"].index(model.ability), model.size_bytes)
