"""From three files to a folder with identities.csv, attributes.csv and report.html."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from tropescope.annotations.captions import read_captions
from tropescope.store.atomic import write_if_changed
from tropescope.visage.analysis import Analysis, Settings, analyse
from tropescope.visage.captioned import Captioned, caption_analysis, salience_csv
from tropescope.visage.claims import Claim, claims_of
from tropescope.visage.inputs import Inputs, read_inputs
from tropescope.visage.page import report_html
from tropescope.visage.tables import attributes_csv, identities_csv


@dataclass(frozen=True)
class Written:
    """What was written, and what it says."""

    inputs: Inputs
    analysis: Analysis
    claims: tuple[Claim, ...]
    folder: Path
    captioned: Captioned | None = None

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def identities(self) -> Path:
        return self.folder / "identities.csv"

    @property
    def attributes(self) -> Path:
        return self.folder / "attributes.csv"

    @property
    def salience(self) -> Path:
        """Only where captions were given."""
        return self.folder / "salience.csv"


def write_visage(
    annotations: Path,
    attributes: Path,
    stereotypes: Path,
    out: Path,
    *,
    captions: Path | None = None,
    settings: Settings | None = None,
) -> Written:
    """Read, score and write; writing again with the same inputs changes no byte."""
    settings = settings or Settings()
    inputs = read_inputs(annotations, attributes, stereotypes)
    analysis = analyse(inputs, settings)
    claims: tuple[Claim, ...] = ()
    if inputs.released:
        other = analyse(inputs, replace(settings, published=not settings.published))
        published, default = (analysis, other) if settings.published else (other, analysis)
        claims = claims_of(inputs, published, default)
    captioned = None
    if captions is not None:
        captioned = caption_analysis(inputs, analysis, read_captions(captions, inputs.marks))
    files = {
        f"{what}: {path.name}": _digest(path)
        for what, path in (
            ("Annotations", annotations),
            ("Attributes", attributes),
            ("Stereotypes", stereotypes),
            ("Captions", captions),
        )
        if path is not None
    }
    written = Written(inputs, analysis, claims, out, captioned)
    if captioned is not None:
        write_if_changed(written.salience, salience_csv(captioned))
    write_if_changed(written.identities, identities_csv(analysis))
    write_if_changed(written.attributes, attributes_csv(analysis))
    write_if_changed(written.report, report_html(inputs, analysis, claims, captioned, files=files))
    return written


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
