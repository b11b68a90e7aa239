"""`tropescope plan`."""

from __future__ import annotations

import sys

from tropescope.cli.options import Json, Limit, Offline, StudyArgument


def plan(
    study: StudyArgument, limit: Limit = None, offline: Offline = False, json: Json = False
) -> None:
    """Show what a study would do: prompts, images, model calls, and what an API would cost.

    Checks the study and its prompts; makes no image and loads no weights.

    Examples:

        tropescope plan my_study.yaml

        tropescope plan my_study.yaml --json
    """
    from tropescope.audit.planning import describe_plan
    from tropescope.cli.output import print_json

    described = describe_plan(study, limit=limit, offline=offline)
    if json:
        print_json(described.to_dict())
    else:
        sys.stdout.write(described.to_text())
