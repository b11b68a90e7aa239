"""A study's entry for images that exist already: a folder with a table that says what they are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tropescope.models.entry import ModelEntry, ModelPlugin, OpenContext
from tropescope.models.protocol import TextToImage

ColumnName = Annotated[str, Field(min_length=1, max_length=300)]


class FolderColumns(BaseModel):
    """What the columns of the metadata are called, where they are called otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: ColumnName = "file"
    prompt: ColumnName = "prompt"
    concept: ColumnName = "concept"
    outcome: ColumnName = "outcome"
    reason: ColumnName = "reason"
    labels_prefix: ColumnName = "label_"
    """`label_smiling` holds what is known for certain of the attribute `smiling`."""

    @model_validator(mode="after")
    def _names_differ(self) -> FolderColumns:
        names = (self.file, self.prompt, self.concept, self.outcome, self.reason)
        if len(set(names)) != len(names):
            raise ValueError("two parts of `columns` name the same column")
        return self


class FolderEntry(ModelEntry):
    """Images of any model, made elsewhere. Paths start at the folder of the study file."""

    adapter: Literal["folder"]
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    path: Annotated[str, Field(min_length=1, max_length=4096)]
    metadata: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    """A CSV, JSONL or Parquet file in that folder; by default the first metadata.* there is."""
    columns: FolderColumns = FolderColumns()


def _open(entry: FolderEntry, context: OpenContext) -> TextToImage:
    from tropescope.models.folder_images import FolderImages

    return FolderImages(entry, context)


plugin = ModelPlugin(entry=FolderEntry, open=_open)
