"""Where weights lie and which exactly they are: hub ids to commits, folders to content hashes.

Only safetensors are loaded and no code from a repository is run. Nothing is downloaded offline.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tropescope.errors import MissingDependency, ModelError, OfflineError
from tropescope.models.entry import OpenContext

_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_REVISION = re.compile(r"(?!.*\.\.)[\w][\w./-]*\Z")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?\Z")
EMBEDDED = "embedded:"
EMBEDDED_GROUP = "tropescope.embedded"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


@dataclass(frozen=True, slots=True)
class Weights:
    """A model named in a study: a local folder, or a hub id at a commit."""

    id: str
    folder: Path | None
    commit: str

    @property
    def identity(self) -> dict[str, str]:
        """What decides the weights: for a folder its content alone, wherever it lies."""
        return {"content": self.commit} if self.folder else {"id": self.id, "commit": self.commit}


def embedded_folder(name: str) -> Path:
    """The folder of a model that comes with an installed package, named `embedded:<name>`."""
    refusal = ModelError(f"no installed package has an embedded model '{name}'")
    for point in entry_points(group=EMBEDDED_GROUP):
        try:
            return Path(point.load()(name))
        except ModelError as error:
            refusal = error
    raise refusal


def locate(model_id: str, revision: str | None, context: OpenContext) -> Weights:
    """Find a local folder (relative to the study's), else take the id as one of the model hub."""
    if model_id.startswith(EMBEDDED):
        folder = embedded_folder(model_id.removeprefix(EMBEDDED))
        return Weights(model_id, folder, context.fingerprints.of_folder(folder))
    folder = Path(os.path.expanduser(model_id))
    if not folder.is_absolute():
        folder = context.folder / folder
    if folder.is_dir():
        refuse_pickles(folder)
        return Weights(model_id, folder, context.fingerprints.of_folder(folder))
    if not _HUB_ID.match(model_id):
        raise ModelError(
            f"there is no folder '{model_id}', and it is not a model id of the form owner/name",
            fix="give the path of a folder (relative to the study file) or a hub id",
        )
    return Weights(model_id, None, _commit_of(model_id, revision or "main", context))


def hub() -> Any:
    """The model hub's client library; its submodules are not attributes until imported."""
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError:
        raise MissingDependency("huggingface_hub", extra="models") from None
    return huggingface_hub


def _commit_of(model_id: str, revision: str, context: OpenContext) -> str:
    """The commit a branch or tag stands for, asked for once in the life of a run folder.

    Offline it is read from the local cache. A branch that moves later changes no finished run.
    """
    if _COMMIT.match(revision):
        return revision
    if not _REVISION.match(revision):
        raise ModelError(f"'{revision}' is not a revision", fix="give a branch, a tag or a commit")
    known = context.fingerprints.commits
    name = f"{model_id}@{revision}"
    if name not in known:
        known[name] = _ask_for_commit(model_id, revision, context)
    return known[name]


def is_cached(weights: Weights) -> bool:
    """Whether a hub model at its commit lies in the local cache."""
    folder = f"models--{weights.id.replace('/', '--')}"
    return (Path(hub().constants.HF_HUB_CACHE) / folder / "snapshots" / weights.commit).is_dir()


def _ask_for_commit(model_id: str, revision: str, context: OpenContext) -> str:
    library = hub()
    if context.offline:
        cache = Path(library.constants.HF_HUB_CACHE)
        reference = cache / f"models--{model_id.replace('/', '--')}" / "refs" / revision
        if reference.is_file():
            commit = reference.read_text("ascii", errors="replace").strip()
            if _COMMIT.match(commit):
                return commit
        raise OfflineError(
            f"'{model_id}' ({revision}) is not on this machine and the run is offline",
            fix="run once without --offline to download it, or give a local folder",
        )
    try:
        return str(library.HfApi().model_info(model_id, revision=revision).sha)
    except Exception as error:
        raise explain_hub_error(model_id, error) from error


def small_files(weights: Weights, context: OpenContext) -> Path:
    """A hub model's configurations and tokenizers without its weights, in the local cache."""
    try:
        path = hub().snapshot_download(
            weights.id,
            revision=weights.commit,
            allow_patterns=["*.json", "*.txt", "*.model"],
            ignore_patterns=["*.safetensors.index.json"],
            local_files_only=context.offline,
        )
    except Exception as error:
        raise explain_hub_error(weights.id, error) from error
    return Path(path)


def explain_hub_error(model_id: str, error: Exception) -> ModelError:
    """The hub's refusals in words that say what to do."""
    errors = hub().errors
    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"'{model_id}' is gated: its owner asks you to accept a licence first",
            fix="accept it on the model's page, then set HF_TOKEN or run `hf auth login`",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError(
            f"there is no model '{model_id}' on the hub, or it is private",
            fix="check the spelling; for a private model set HF_TOKEN",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelError(f"'{model_id}' has no such revision", fix="check `revision:`")
    if isinstance(error, errors.LocalEntryNotFoundError | errors.EntryNotFoundError):
        return OfflineError(
            f"'{model_id}' is not complete on this machine",
            fix="run once without --offline to download it",
        )
    first_line = str(error).strip().split("\n")[0][:300]
    return ModelError(
        f"the model hub could not be asked about '{model_id}': {first_line}",
        fix="check the connection, or use --offline with a model that is already here",
    )


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder whose weights could run code when loaded."""
    for root, _, names in os.walk(folder, followlinks=True):
        pickled = sorted(name for name in names if name.endswith(_PICKLED))
        if pickled and not any(name.endswith(".safetensors") for name in names):
            place = Path(root, pickled[0]).relative_to(folder)
            raise ModelError(
                f"refused: '{place}' is a pickled checkpoint, which can run code when loaded",
                fix="convert it to safetensors (save_pretrained with safe_serialization)",
            )


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{path.name} is missing in {path.parent}",
            fix="give a folder in diffusers or transformers format",
        ) from None
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path} does not hold an object")
    return data
