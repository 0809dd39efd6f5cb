"""What a server tells of itself, and the doctor of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "serving"))
from fake_server import Answer, FakeServer

from app.doctor import examine
from app.server_state import PrefixCache, prefix_cache
from app.settings import Settings

METRICS = """# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 800.0
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 200.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e+09
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 600.0
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 150.0
"""


@pytest.fixture
def server():
    server = FakeServer()
    yield server
    server.close()


def test_a_vllm_counts_its_cache_over_all_engines(server):
    server.say("/metrics", METRICS)
    assert prefix_cache(f"{server.url}/v1", "key") == PrefixCache(1_000, 750)
    assert server.requests[0].headers["authorization"] == "Bearer key"


@pytest.mark.parametrize("answer", ["something else", Answer(METRICS, status=403)])
def test_others_count_nothing(server, answer):
    server.say("/metrics", answer)
    assert prefix_cache(server.url) is None


def test_nobody_is_there():
    assert prefix_cache("http://127.0.0.1:9") is None
    assert prefix_cache("no address") is None


def test_the_doctor_tells_it(server, tmp_path):
    server.say("/metrics", METRICS)
    server.say("/v1/models", {"object": "list", "data": [{"id": "big", "owned_by": "vllm"}]})
    settings = Settings(model=server.url, models=tmp_path, library=str(tmp_path / "library"))
    found = {finding.what: finding.value for finding in examine(settings, measure=False)}
    assert found["prefix cache"] == "75% of 1,000 prompt tokens since its start"
    assert "gistree serve" in found["attention"]
