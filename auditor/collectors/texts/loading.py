"""A saved language model of transformers becomes a model and its tokenizer, without running any code that came with it."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.collectors.extras import needed
from auditor.errors import InputError

__all__ = ["load_language_model"]

_LARGEST_CONFIG = 10_000_000  # bytes


def load_language_model(path: str | Path) -> tuple[Any, Any]:
    """Load a causal language model and its tokenizer from a folder that transformers saved.

    Only weights in safetensors files are read, only classes that transformers itself has are built, and nothing is
    downloaded.

    Args:
        path: A folder with config.json, the weights as .safetensors and the files of the tokenizer.

    Returns:
        The model, in evaluation mode, and its tokenizer, for `collect_texts`.

    Raises:
        InputError: No such folder, weights in files that can run code when loaded, or a model that brings its own code.
        MissingExtraError: PyTorch or transformers is not installed.
    """
    folder = Path(path)
    _refuse_folder(folder)
    _refuse_code(folder)
    purpose = "loading a language model"
    needed(
        "torch", purpose=purpose, extra="language"
    )  # without which transformers can be imported and loads nothing
    library = needed("transformers", purpose=purpose, extra="language")
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        with _quiet(library):
            tokenizer = library.AutoTokenizer.from_pretrained(str(folder), **options)
            model, found = library.AutoModelForCausalLM.from_pretrained(
                str(folder), use_safetensors=True, output_loading_info=True, **options
            )
    except Exception as error:
        reason = _validate.one_line(error).replace(str(folder), folder.name)
        raise InputError(
            f"folder {folder.name!r} could not be loaded as a causal language model: {reason}."
        ) from error
    missing = sorted(found["missing_keys"])
    if missing:  # which transformers fills with random numbers
        raise InputError(
            f"folder {folder.name!r} lacks {len(missing)} weights of {type(model).__name__}, the first of them"
            f" {missing[0]!r}; save the whole model, as the class that it was trained as."
        )
    return model.eval(), tokenizer


@contextlib.contextmanager
def _quiet(library: Any) -> Iterator[None]:
    """Without the library's own progress bars and reports, which are put back as they were."""
    logging = library.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _refuse_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(
            f"folder {folder.name!r} must be there and hold a model saved by transformers"
            " (model.save_pretrained and tokenizer.save_pretrained); models are not downloaded."
        )
    if not (folder / "config.json").is_file():
        raise InputError(
            f"folder {folder.name!r} has no config.json; name the folder that save_pretrained wrote."
        )
    if (folder / "adapter_config.json").exists():
        raise InputError(
            f"folder {folder.name!r} holds an adapter for another model; merge them (merge_and_unload) and save the whole."
        )
    if not any(folder.glob("*.safetensors")):
        others = sorted(
            item.name for kind in ("*.bin", "*.pt", "*.pth", "*.ckpt") for item in folder.glob(kind)
        )
        found = f", only {others[0]!r}, and loading such a file can run any code in it" if others else ""
        raise InputError(
            f"folder {folder.name!r} has no weights in safetensors files{found}; save the model again with"
            " save_pretrained(..., safe_serialization=True)."
        )


def _refuse_code(folder: Path) -> None:
    """Refuse a model or tokenizer whose settings name classes that come with it."""
    for name in ("config.json", "tokenizer_config.json"):
        file = folder / name
        if not file.is_file():
            continue
        try:
            if file.stat().st_size > _LARGEST_CONFIG:
                raise InputError(
                    f"file {name!r} is larger than {_LARGEST_CONFIG:,} bytes; is it a configuration?"
                )
            settings = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"file {name!r} must be JSON, but it is not: {_validate.one_line(error)}."
            ) from error
        if isinstance(settings, dict) and settings.get("auto_map"):
            raise InputError(
                f"file {name!r} names code that comes with the model (auto_map), which is never run; load the model"
                " yourself, and pass it to collect_texts with its tokenizer."
            )
