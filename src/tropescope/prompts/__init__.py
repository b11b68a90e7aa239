"""From a study to the exact words put to a model."""

from tropescope.prompts.rendering import Prompt, prompts_of

__all__ = ["Prompt", "prompts_of"]
