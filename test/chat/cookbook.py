# SPDX-License-Identifier: MIT
"""The renderers of Tinker's cookbook, without the packages that only training
and images need: stand-ins have the few names of them that rendering uses."""
import sys
import types


class EncodedTextChunk:
    def __init__(self, tokens):
        self.tokens = list(tokens)

    @property
    def length(self):
        return len(self.tokens)


class ModelInput:
    def __init__(self, chunks):
        self.chunks = list(chunks)

    def to_ints(self):
        return [t for chunk in self.chunks for t in chunk.tokens]


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    return made


def stand_in():
    """Before the cookbook is imported, and behind transformers, which looks for
    what is really there."""
    from transformers import PreTrainedTokenizerFast  # noqa: F401
    chunks = dict(EncodedTextChunk=EncodedTextChunk, ModelInput=ModelInput,
                  ModelInputChunk=object, ImageChunk=type("ImageChunk", (), {}))
    module("tinker", types=module("tinker.types", **chunks), **chunks)
    module("torch", Tensor=list, tensor=list, zeros=lambda n: [0.0] * n,
           cat=lambda parts: [w for part in parts for w in part])
    image = module("PIL.Image", Image=type("Image", (), {}))
    module("PIL", Image=image).__path__ = []


def renderer(name, tokenizer):
    from tinker_cookbook import renderers
    return renderers.get_renderer(name, tokenizer)


def prompt(made, messages):
    return made.build_generation_prompt(messages).to_ints()


def example(made, messages, train_on):
    """Ids and weights of a supervised example."""
    from tinker_cookbook.renderers import TrainOnWhat
    tokens, weights = made.build_supervised_example(
        messages, train_on_what=TrainOnWhat(train_on))
    return tokens.to_ints(), [float(w) for w in weights]
