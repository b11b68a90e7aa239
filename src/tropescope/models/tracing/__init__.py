"""What happens inside a diffusion model while it paints.

    with trace(pipeline, TraceRequest(attributes=(hat,), words=("person",))) as tracer:
        images = pipeline(prompts, ...).images
    traces = tracer.result()

One layer for U-Nets and MM-DiTs. It only listens: forward hooks on the denoiser, a wrapper around
the scheduler's `step`, and a tap on torch's attention function. The pipeline's own calls are never
changed or merged with the extra ones, so images are the same to the bit with and without tracing.

- `request`: what to trace; `result`: what comes back, plain numpy, and how it is stored
- `tracer`: the hooks, and which call belongs to which step
- `noise_levels`: schedulers, and every prediction as (x̂0, ε̂) and v = ε̂ − x̂0
- `families`: how Stable Diffusion, XL, 3 and FLUX call their denoiser
- `directions`: the extra velocities of SPI; `latent_paths`: latents, and raw recordings
- `thumbnails`: the image a step foresees
- `words`, `attention`, `heat`: which tokens a word is, how much each pixel looks at them
"""

from tropescope.models.tracing.request import AttributeTexts, TraceRequest
from tropescope.models.tracing.result import ImageTrace, TraceFacts, TraceResult, WordTrace
from tropescope.models.tracing.tracer import Tracer, trace

__all__ = [
    "AttributeTexts",
    "ImageTrace",
    "TraceFacts",
    "TraceRequest",
    "TraceResult",
    "Tracer",
    "WordTrace",
    "trace",
]
