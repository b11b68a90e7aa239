"""ViSAGe from published annotations: tendency, offensiveness, agreement, claims, maps, report.

from tropescope.visage import analyse, read_inputs

inputs = read_inputs(annotations, attributes, stereotypes)
analysis = analyse(inputs)
for row in analysis.identities:
    print(row.identity, row.tendency.difference.value, row.tendency.theta.value)
"""

from tropescope.visage.analysis import Analysis, IdentityRow, Settings, analyse
from tropescope.visage.inputs import Inputs, read_inputs

__all__ = ["Analysis", "IdentityRow", "Inputs", "Settings", "analyse", "read_inputs"]
