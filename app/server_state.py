"""What a model server tells of itself beside its answers."""

import re
from dataclasses import dataclass

import httpx

_QUERIES = re.compile(r"^vllm:prefix_cache_queries(?:_total)?(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_HITS = re.compile(r"^vllm:prefix_cache_hits(?:_total)?(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """How much a vLLM has taken from its prefix cache since it was started, in tokens.

    Attributes:
        asked: Of all prompts.
        hit: Of these, what came from the cache.
    """

    asked: int
    hit: int


def prefix_cache(url: str, api_key: str = "") -> PrefixCache | None:
    """The counts of a vLLM; None where none is there, or another server.

    Args:
        url: With or without "/v1".
        api_key: Where the server wants one.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    root = url.rstrip("/").removesuffix("/v1")
    try:
        reply = httpx.get(f"{root}/metrics", headers=headers, timeout=_PATIENCE_S, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    asked, hit = _QUERIES.findall(reply.text), _HITS.findall(reply.text)
    if reply.status_code != 200 or not asked:
        return None
    return PrefixCache(round(sum(map(float, asked))), round(sum(map(float, hit))))
