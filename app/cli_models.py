"""``gistree models``: see, fetch, choose, remove."""

from typing import Annotated

import typer

from app.cli_options import JsonOption, print_json
from serving.errors import GistreeError

models = typer.Typer(help="Language models: see, fetch, choose, remove.", no_args_is_help=True)


@models.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models that gistree knows, and which are here."""
    from app.models import choose_model, paces
    from app.settings import Settings
    from app.terminal import out, show_models
    from serving.catalogue import catalogue

    settings = Settings()
    try:
        used = choose_model(settings).name
    except GistreeError:
        used = ""
    if as_json:
        print_json(
            {
                "models": [
                    {
                        "name": card.name,
                        "kind": card.kind,
                        "title": card.title,
                        "licence": card.licence,
                        "size_bytes": card.size_bytes,
                        "window": card.window,
                        "ability": card.ability if card.kind == "llm" else None,
                        "installed": card.is_in(settings.models),
                        "used": card.name in (used, settings.embedder),
                    }
                    for card in catalogue().values()
                ]
            }
        )
        return
    show_models(tuple(catalogue().values()), settings.models, (used, settings.embedder))
    pace = paces(settings).get(used)
    if pace:
        out.print(f"{used} reads {pace.prompt_tokens_per_s:.0f} tokens a second here.")


@models.command("fetch")
def fetch_models(
    names: Annotated[list[str], typer.Argument(help="Names of the list.")],
) -> None:
    """Put models into the model cache; resumes where it was interrupted."""
    from app.settings import Settings
    from app.terminal import fetch_bar, out, plain
    from serving.catalogue import card
    from serving.fetch import fetch

    folder = Settings().models
    for card_ in [card(name) for name in names]:
        if card_.is_in(folder):
            out.print(plain(f"{card_.name} is in {folder}"))
            continue
        with fetch_bar(card_.name) as show:
            path = fetch(card_.name, folder, on_progress=show)
        out.print(plain(f"{card_.name}: {path}"))


@models.command("use")
def use_model(
    name: Annotated[
        str, typer.Argument(help="A name of the list, a .gguf file, a server's URL, or auto.")
    ],
) -> None:
    """Choose the model that answers, from now on."""
    from app.models import choose_model
    from app.settings import Settings, save
    from app.terminal import out, plain

    if name != "auto":
        choose_model(Settings(model=name))  # says what is wrong before anything is kept
    file = save(model=name)
    out.print(plain(f"{name} answers from now on ({file})"))


@models.command("remove")
def remove_models(
    names: Annotated[list[str], typer.Argument(help="Names of the list.")],
) -> None:
    """Take models out of the model cache."""
    from app.settings import Settings
    from app.terminal import out, plain
    from serving.fetch import remove

    for name in names:
        freed = remove(name, Settings().models)
        out.print(plain(f"{name}: {freed / 1e6:,.0f} MB freed"))
