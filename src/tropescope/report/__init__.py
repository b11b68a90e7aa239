"""One self-contained HTML file: what a run found, how sure, compared with what, and the pictures.

The file opens offline under a strict content security policy, reads well without JavaScript and on
paper, stays below a fixed size whatever the study's, and is the same bytes for the same run.
"""

from tropescope.report.writing import write_report

__all__ = ["write_report"]
