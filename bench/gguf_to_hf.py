"""A GGUF model as a folder that transformers and vLLM load.

    python bench/gguf_to_hf.py model.gguf FOLDER [--layers 6 --positions 40960]

Needs torch, transformers, gguf and accelerate (the environment of ``make test-vllm`` has them).
Weights are taken out of their quantisation. With --layers and --positions only the configuration
and the tokenizer are written, for speed measurements with random weights.
"""

import argparse
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from app.settings import Settings
from serving.catalogue import card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", help="a GGUF file, or the name of a fetched model of the catalogue")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=0, help="configuration only: so many layers")
    parser.add_argument("--positions", type=int, default=0, help="and so long a window")
    options = parser.parse_args()
    path = Path(options.file)
    if not path.is_file():
        path = card(options.file).paths(Settings().models)[0]
    source, file = str(path.resolve().parent), path.name
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file)
    tokenizer.save_pretrained(options.folder)
    if options.layers:
        config = AutoConfig.from_pretrained(source, gguf_file=file)
        config.num_hidden_layers = options.layers
        config.max_position_embeddings = options.positions or config.max_position_embeddings
        config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(options.folder)
        return
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=file, dtype=torch.float32)
    model.hf_quantizer = None  # save_pretrained refuses a model that it takes for quantised
    for name in ("quantization_method", "is_quantized"):
        if hasattr(model, name):
            setattr(model, name, None)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(options.folder)


if __name__ == "__main__":
    main()
