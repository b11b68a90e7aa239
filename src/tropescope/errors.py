"""Everything Tropescope can refuse, as one tree.

TropescopeError            base of all; printed without a traceback, with its exit code
├── StudyError             the study file is wrong: what, where (file and line), how to fix it
├── PromptError            a prompt cannot be put to a model (too long, unknown word)
├── ModelError             a model cannot be loaded or called
│   ├── MissingDependency  an optional part is not installed; names the install command
│   ├── OfflineError       something would have been downloaded in an offline run
│   └── SpendLimit         an API run reached its spending cap
├── AnnotationError        a file of ratings, marks or stereotypes is wrong: file, row, fix
├── ImageError             an image file is not acceptable (bomb, truncated, wrong format)
├── MeasureError           a measure is not defined for this input
└── StoreError             the run folder cannot be used
    ├── FolderLocked       another process works on it
    ├── Corruption         an artefact does not match its hash
    └── OldFormat          written by an incompatible version
"""

from __future__ import annotations


class TropescopeError(Exception):
    """Base class. `fix` says what the user can do next."""

    exit_code = 1

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.fix}" if self.fix else self.message


class StudyError(TropescopeError):
    exit_code = 3


class PromptError(TropescopeError):
    exit_code = 3


class ModelError(TropescopeError):
    exit_code = 4


class MissingDependency(ModelError):
    """An optional package is missing: `extra` is the part of the install command in brackets."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(f"{what} is not installed", fix=f"pip install 'tropescope[{extra}]'")


class OfflineError(ModelError):
    pass


class SpendLimit(ModelError):
    pass


class AnnotationError(TropescopeError):
    exit_code = 3


class ImageError(TropescopeError):
    pass


class MeasureError(TropescopeError):
    pass


class StoreError(TropescopeError):
    exit_code = 5


class FolderLocked(StoreError):
    pass


class Corruption(StoreError):
    pass


class OldFormat(StoreError):
    pass
