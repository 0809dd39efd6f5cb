"""The layers, the light imports, and that our packages are ours."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ["ui", "app", "agents", "retrieval", "memory", "serving"]
HEAVY = {
    "torch",
    "transformers",
    "sentence_transformers",
    "vllm",
    "faiss",
    "streamlit",
    "langchain",
    "langchain_core",
    "langgraph",
    "mcp",
    "llama_index",
    "ray",
    "onnxruntime",
    "xllamacpp",
    "rapidocr",
    "cv2",
    "pypdfium2",
    "lxml",
    "tantivy",
    "mammoth",
    "tokenizers",
}


def modules() -> list[Path]:
    return [file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))]


def imports(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("file", modules(), ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_run_from_the_outside_in(file):
    own = LAYERS.index(file.relative_to(ROOT).parts[0])
    for name in imports(file):
        top = name.split(".")[0]
        assert top != "gistree", f"{file} imports the face"
        if top in LAYERS:
            assert LAYERS.index(top) >= own, f"{file} imports {name}, which is further out"
            if LAYERS[own] == "ui" and top != "ui":
                assert top == "app", f"{file} imports {name}; pages speak to app only"


@pytest.mark.parametrize("layer", ["agents", "retrieval", "memory", "serving"])
def test_only_app_reads_the_environment(layer):
    for file in sorted((ROOT / layer).rglob("*.py")):
        if file.name == "sparse_plugin.py":
            continue  # vLLM calls it in processes that are given nothing but the environment
        text = file.read_text(encoding="utf-8")
        assert "os.getenv" not in text, file
        assert "environ.get" not in text, file


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["gistree", "app.cli", "app.library"])
def test_importing_is_light(module):
    loaded = set(run(f"import sys, {module}; print(*sys.modules)").split())
    assert not HEAVY & loaded


def test_our_packages_are_ours():
    for layer in LAYERS:
        origin = Path(run(f"import {layer}; print({layer}.__file__)").strip())
        assert origin == ROOT / layer / "__init__.py"


def test_the_face_exports_what_it_says():
    import gistree

    for name in gistree.__all__:
        assert hasattr(gistree, name), name
