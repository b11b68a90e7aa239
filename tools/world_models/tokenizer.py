"""The one tokenizer of all small models: whole words of the world, anything else is `<unk>`.

Words have the numbers of `tropescope.world.vocabulary`; `<unk>` follows and the end has the largest
number (transformers pools CLIP text there). The format is a plain fast tokenizer: CLIP's own is
byte-pair encoding, which would spell unknown words instead of refusing them.
"""

from __future__ import annotations

from typing import Any

from tropescope.world.definition import World
from tropescope.world.vocabulary import END, PAD, START, Vocabulary

UNKNOWN = "<unk>"


def world_tokenizer(world: World, length: int) -> Any:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*Vocabulary(world).words[:-1], UNKNOWN, END]
    numbers = {word: index for index, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=UNKNOWN))
    marks = r'[.?!"()]+'
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"[,;:]"), " "),
            normalizers.Replace(Regex(rf"(?<!\S){marks}|{marks}(?!\S)"), ""),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}",
        special_tokens=[(START, numbers[START]), (END, numbers[END])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        sep_token=END,
        unk_token=UNKNOWN,
        pad_token=PAD,
        padding_side="right",
        model_max_length=length,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )
