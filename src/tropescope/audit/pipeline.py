"""Running a study: each stage reads the tables of earlier ones and writes its own.

The same call starts a run, continues an interrupted one, and does nothing on a finished one.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tropescope.audit.judging import Judgement, open_judge
from tropescope.audit.run_view import Run
from tropescope.audit.seal import remove_changed, write_seal
from tropescope.audit.source import StudySource, study_source
from tropescope.audit.spending import remember_spending, spending_so_far
from tropescope.audit.truth import with_truth
from tropescope.audit.versions import package_versions
from tropescope.engine.progress import NoProgress, Progress
from tropescope.errors import Corruption, MeasureError
from tropescope.features.traces import write_trace_tables
from tropescope.findings.curves import curves_of
from tropescope.findings.estimating import estimates_of
from tropescope.findings.results import Results, read_results
from tropescope.generation.plan import Plan, SuppliesImages, plan_images
from tropescope.generation.table import write_images_table
from tropescope.generation.traces import plan_traces, trace_images, traced
from tropescope.generation.worker import committed, generate_images, pending, require_prompts
from tropescope.models.entry import OpenContext, open_model
from tropescope.models.fingerprints import FileFingerprints
from tropescope.models.protocol import TextToImage
from tropescope.prompts.rendering import Prompt, prompts_of
from tropescope.report import write_report
from tropescope.store.atomic import write_if_changed
from tropescope.store.canonical import digest
from tropescope.store.folder import RunFolder
from tropescope.store.lock import folder_lock
from tropescope.study import Study
from tropescope.version import __version__


def default_folder(source: StudySource, limit: int | None) -> Path:
    return Path("runs") / (source.name if limit is None else f"{source.name}-limit{limit}")


def run(
    study: str | Path | Study,
    *,
    out: str | Path | None = None,
    limit: int | None = None,
    offline: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> Run:
    """Run a study into a folder and return the finished run.

    `study` is a file, the name of a ready study, or a `Study`. `limit` makes a small trial with
    about that many images per model, in a folder of its own unless `out` says otherwise.
    """
    source = study_source(study)
    root = Path(out) if out is not None else default_folder(source, limit)
    folder = RunFolder(root)
    progress = progress or NoProgress()
    with folder_lock(root):
        folder.create()
        for name in remove_changed(folder):
            progress.note(f"{name} was changed after the run finished; it is made again")
        fingerprints = FileFingerprints(folder.fingerprints)
        context = OpenContext(fingerprints, source.folder, offline=offline, device=device)
        _run_stages(source, folder, context, limit=limit, progress=progress)
        write_seal(folder)
    return Run(folder)


def open_models(study: Study, context: OpenContext) -> dict[str, TextToImage]:
    return {name: open_model(entry, context) for name, entry in study.models.items()}


def plan_study(study: Study, models: Mapping[str, TextToImage], limit: int | None = None) -> Plan:
    return plan_images(
        models,
        prompts_of(study),
        images_per_prompt=study.images_per_prompt,
        seed=study.seed,
        limit=limit,
    )


def _run_stages(
    source: StudySource,
    folder: RunFolder,
    context: OpenContext,
    *,
    limit: int | None,
    progress: Progress,
) -> None:
    study = source.study
    models = open_models(study, context)
    judge = open_judge(study, context)
    plan = plan_study(study, models, limit)
    context.fingerprints.save()
    todo = set(pending(plan, committed(folder), folder))
    new_study = not folder.study.exists() or folder.study.read_bytes() != source.text.encode()
    folder.remove_leftovers(images=bool(todo))
    _check_before_images(study, plan, models, todo, progress)
    if todo or new_study:
        judge.check(study)
        _begin(source, folder, progress)
    if todo:
        _generate(study, plan, models, folder, progress)
    images = write_images_table(plan, committed(folder), folder)
    traces = _trace(study, plan, models, folder, progress)
    judgement = judge.judge(study, folder, images, progress)
    if judgement.facts:
        folder.update_manifest(judge=judgement.facts)
    _write_results(study, plan, models, judgement, traces, folder)


def _begin(source: StudySource, folder: RunFolder, progress: Progress) -> None:
    """From here on the folder is at work: no seal, and the study it works on."""
    if folder.results.exists():
        with suppress(Corruption):
            before = read_results(folder.results).study
            if before != source.study.study:
                progress.note(f"this folder held the study '{before}'; its images are kept")
    folder.unseal()
    write_if_changed(folder.study, source.text.encode())


def _check_before_images(
    study: Study,
    plan: Plan,
    models: Mapping[str, TextToImage],
    todo: set[str],
    progress: Progress,
) -> None:
    """Refuse what can be known to be wrong before the first image.

    A folder is asked every time, because a concept that it lacks leaves no trace in the plan.
    """
    asked = {
        name: model
        for name, model in models.items()
        if isinstance(model, SuppliesImages)
        or any(image.key in todo for image in plan.of_model(name))
    }
    if asked:
        for warning in require_prompts(asked, prompts_of(study) + _traced_texts(study)):
            progress.note(f"warning: {warning}")
    if not plan.images:
        raise MeasureError(
            "the study asks for no image",
            fix="check that the folder's metadata holds images for the study's prompts",
        )


def _traced_texts(study: Study) -> list[Prompt]:
    """The texts d+ and d− that tracing puts to the models, checked like prompts."""
    if study.trace is None:
        return []
    followed = study.attributes if study.trace.attributes is None else study.trace.attributes
    return [
        Prompt(text=text, concept=name, template=text, pair_group=text)
        for name in followed
        for text in (study.attributes[name].present, study.attributes[name].absent)
    ]


def _generate(
    study: Study,
    plan: Plan,
    models: Mapping[str, TextToImage],
    folder: RunFolder,
    progress: Progress,
) -> None:
    started = time.time()
    facts: dict[str, Any] = {
        "tropescope": __version__,
        "versions": package_versions(),
        "platform": platform.platform(),
        "started": round(started, 3),
    }
    folder.update_manifest(**facts)
    remember_spending(plan, models, folder)
    try:
        halvings = generate_images(
            plan,
            models,
            batch_sizes={name: entry.batch_size for name, entry in study.models.items()},
            folder=folder,
            progress=progress,
        )
    finally:
        spent = spending_so_far(plan, models, folder)
        folder.update_manifest(
            spending={n: {"spent": s.amount, "asked": s.asked} for n, s in spent.items()}
        )
    if halvings:
        progress.note(f"memory ran out {halvings} times; batches were made smaller")
    folder.update_manifest(
        models={name: model.facts() for name, model in models.items()},
        batch_halvings=halvings + int(folder.manifest_facts().get("batch_halvings", 0)),
        generation_seconds=round(time.time() - started, 3),
    )


def _trace(
    study: Study,
    plan: Plan,
    models: Mapping[str, TextToImage],
    folder: RunFolder,
    progress: Progress,
) -> str:
    """Trace what the study asks for; the fingerprint of the traces, or nothing."""
    if study.trace is None:
        return ""
    traces = plan_traces(
        study.trace,
        study.attributes,
        plan,
        models,
        batch_sizes={name: entry.batch_size for name, entry in study.models.items()},
    )
    if any(item.key not in traced(folder) for item in traces.images):
        folder.unseal()
    trace_images(traces, models, folder=folder, progress=progress)
    return write_trace_tables(traces, folder)


def _write_results(
    study: Study,
    plan: Plan,
    models: Mapping[str, TextToImage],
    judgement: Judgement,
    traces: str,
    folder: RunFolder,
) -> None:
    inputs = digest(
        {
            "tropescope": __version__,
            "presence": judgement.fingerprint,
            "traces": traces,
            "plan": plan.fingerprint(),
            "study": study.model_dump(mode="json", exclude={"models"}),
        }
    )
    if folder.report.exists() and _current_results(folder) == inputs:
        return
    sets, rows = estimates_of(study, folder, logit_scale=judgement.logit_scale)
    curves, foretold = curves_of(study, folder)
    results = Results(
        tropescope=__version__,
        inputs=inputs,
        versions=package_versions(),
        study=study.study,
        models={name: model.identity() for name, model in models.items()},
        judge=judgement.judge,
        logit_scale=judgement.logit_scale,
        item_sets=sets,
        estimates=(*with_truth(rows, models, plan), *foretold),
        curves=tuple(curves),
    )
    folder.unseal()
    # The report first: results that are there say that the report is there too.
    write_report(folder, results, study, facts=results.versions)
    write_if_changed(folder.results, results.to_json())


def _current_results(folder: RunFolder) -> str | None:
    try:
        return read_results(folder.results).inputs
    except Corruption:
        return None
