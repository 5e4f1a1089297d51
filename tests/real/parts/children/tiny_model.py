"""Make a language model of random weights, small enough to be made on the spot: nothing is downloaded.

Llama architecture with grouped-query attention, a byte-level vocabulary and a chat template. Its answers are
random printable characters and always as long as they may be. With `any_byte` they are noise: control
characters, broken UTF-8, early ends; a whole answer can be invisible although its tokens are counted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf  # type: ignore[import-not-found,unused-ignore]
import numpy as np  # type: ignore[import-not-found,unused-ignore]

_SPECIAL = ("<s>", "</s>", "<user>", "<model>")
_CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'assistant' -%}<model>{%- else -%}<user>{%- endif -%}"
    "{{ message['content'] }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<model>{%- endif -%}"
)


@dataclass(frozen=True)
class Size:
    """Widths are numbers of floats; a larger model answers more slowly."""

    width: int = 96
    layers: int = 2
    heads: int = 6
    key_heads: int = 3
    hidden: int = 192
    context_tokens: int = 4096
    any_byte: bool = False


SIZES = {
    "tiny": Size(),
    "noise": Size(any_byte=True),
    "slow": Size(width=512, layers=10, heads=8, key_heads=8, hidden=1536),
}
_ALWAYS_LIT = 8.0
_NEVER = -40.0


def _byte_symbols() -> list[str]:
    """The printable stand-in of each of the 256 bytes in a GPT-2 style vocabulary."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    stand_ins = iter(range(0x100, 0x200))
    return [chr(byte if byte in visible else next(stand_ins)) for byte in range(256)]


def make(path: Path, size: Size, *, seed: int = 20261130) -> None:
    """Write the model to `path`, whole or not at all."""
    symbols = _byte_symbols()
    pair = (symbols[ord("a")], symbols[ord("n")])  # the loader insists on at least one merge
    tokens = [*symbols, *_SPECIAL, "".join(pair)]
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(_SPECIAL) + [gguf.TokenType.NORMAL]
    head_width = size.width // size.heads
    key_width = head_width * size.key_heads
    random = np.random.default_rng(seed)

    def noise(*shape: int) -> np.ndarray[Any, Any]:
        return (random.standard_normal(shape) * 0.04).astype(np.float32)

    unfinished = path.with_suffix(f".{os.getpid()}.part")
    writer = gguf.GGUFWriter(str(unfinished), "llama")
    writer.add_name("random weights for tests")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(len(tokens))
    writer.add_context_length(size.context_tokens)
    writer.add_embedding_length(size.width)
    writer.add_block_count(size.layers)
    writer.add_feed_forward_length(size.hidden)
    writer.add_head_count(size.heads)
    writer.add_head_count_kv(size.key_heads)
    writer.add_rope_dimension_count(head_width)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair)])
    writer.add_bos_token_id(tokens.index("<s>"))
    writer.add_eos_token_id(tokens.index("</s>"))
    writer.add_chat_template(_CHAT_TEMPLATE)

    embedding, output = noise(len(tokens), size.width), noise(len(tokens), size.width)
    if not size.any_byte:
        # There are no biases to forbid a token with. So one dimension is lit whatever is read, outshines what
        # the layers add to it, and counts against every token that must not be written.
        embedding[:, 0] = _ALWAYS_LIT
        output[:, 0] = _NEVER
        output[0x21:0x7F, 0] = 0.0
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(size.width, np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(size.layers):
        shapes = {
            "attn_q": (size.width, size.width),
            "attn_k": (key_width, size.width),
            "attn_v": (key_width, size.width),
            "attn_output": (size.width, size.width),
            "ffn_gate": (size.hidden, size.width),
            "ffn_up": (size.hidden, size.width),
            "ffn_down": (size.width, size.hidden),
        }
        for name, shape in shapes.items():
            writer.add_tensor(f"blk.{layer}.{name}.weight", noise(*shape))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(size.width, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.replace(path)
