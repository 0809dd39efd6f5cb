"""``gistree serve``: a model behind vLLM, set up as gistree uses it best."""

import os
from typing import Annotated

import typer


def serve(
    model: Annotated[
        str, typer.Argument(help="A name of `gistree models list`, a folder, or OWNER/NAME.")
    ],
    host: Annotated[str, typer.Option(help="Where it listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    window: Annotated[
        int, typer.Option(min=0, help="Most tokens of prompt and reply; 0: the model's.")
    ] = 0,
    gpus: Annotated[int, typer.Option(min=0, help="That share the model; 0: all.")] = 0,
    kv_dtype: Annotated[
        str, typer.Option(help="Of the keys and values kept; fp8 takes half the memory.")
    ] = "auto",
    attention: Annotated[
        str, typer.Option(help="Sparse attention, as in quest:budget=1024; docs/vllm.md.")
    ] = "",
    python: Annotated[
        str, typer.Option(help="Interpreter or folder of another environment with vLLM.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command only.")] = False,
    more: Annotated[
        list[str] | None, typer.Argument(help="Further arguments of vLLM's, behind --.")
    ] = None,
) -> None:
    """Serve a language model with vLLM. Ctrl-C ends it."""
    from app.settings import Settings
    from app.terminal import err, out, plain
    from serving import vllm_command
    from serving.sparse_plugin import VARIABLE

    serving = vllm_command.Serving(
        model=model,
        host=host,
        port=port,
        window=window,
        gpus=gpus,
        kv_dtype=kv_dtype,
        attention=attention,
        more=tuple(more or ()),
    )
    engine = vllm_command.engine(python)
    machine = vllm_command.machine(os.environ.get("CUDA_VISIBLE_DEVICES"))
    command = vllm_command.command(serving, machine, engine)
    vllm_command.check_attention(engine, attention)
    for note in command.notes:
        err.print(plain(note, "yellow"))
    if dry_run:
        out.print(plain(str(command)), soft_wrap=True)
        return
    environment = {**command.environment, **os.environ}
    if attention:
        environment[VARIABLE] = attention
    key = Settings().api_key
    if key:
        environment["VLLM_API_KEY"] = key  # an argument would be seen by everybody on the machine
    elif host not in ("127.0.0.1", "localhost", "::1"):
        err.print(plain("anybody may use it: set GISTREE_API_KEY to ask for a key", "yellow"))
    err.print(plain(str(command), "dim"), soft_wrap=True)
    err.print(plain(f"ready at “Application startup complete”: GISTREE_MODEL=http://{host}:{port}"))
    # It becomes vLLM, so that Ctrl-C, signals and the exit code are vLLM's own.
    os.execve(command.argv[0], command.argv, environment)
