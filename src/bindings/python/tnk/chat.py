# SPDX-License-Identifier: MIT
"""Conversations to tokens and back, with the template of a model.

    tokenizer = tnk.chat.Tokenizer.load("models/Qwen3-8B")
    template = tnk.chat.Template.load("models/Qwen3-8B")
    prompt = template.encode(tokenizer, [{"role": "user", "content": "What is 6 times 7?"}])
    answer = sampler.sample(prompt.input(), 1, params).result().sequences[0]
    message = tnk.chat.parse(tokenizer, answer.tokens, family="think", prompt=prompt.tokens)

Text and ids are those of Hugging Face's apply_chat_template(). `messages` are a list of
messages, or a request body with "messages" and "tools"; `shape` names its format. Where a
tokenizer is needed, None is the one in which each byte is a token, as in tnk/byte-lm. All
calls are synchronous and release the interpreter's lock. The header tnk/chat.h has the
details.
"""
from __future__ import annotations

import calendar
import datetime
import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _future, _native, _results, _types

if TYPE_CHECKING:
    from ._compat_types import Datum, ModelInput

Shape = Literal["template", "openai", "responses", "anthropic"]
TrainOn = Literal["nothing", "last-answer", "all-answers", "roles", "everything", "by-message"]
Family = Literal[
    "plain", "think", "hermes", "xml", "deepseek", "dsml", "kimi", "glm", "harmony", "mistral", "llama", "xtml"
]
DeltaKind = Literal["thinking", "content", "call-begin", "arguments", "call-end", "unparsed"]
# Messages, or a request body.
Messages = Sequence[Mapping[str, Any]] | Mapping[str, Any]

_SHAPES: tuple[Shape, ...] = ("template", "openai", "responses", "anthropic")
_TRAINS: tuple[TrainOn, ...] = ("nothing", "last-answer", "all-answers", "roles", "everything", "by-message")
_FAMILIES: tuple[Family, ...] = (
    "plain", "think", "hermes", "xml", "deepseek", "dsml", "kimi", "glm", "harmony", "mistral", "llama", "xtml",
)  # fmt: skip
_KINDS: tuple[DeltaKind, ...] = ("thinking", "content", "call-begin", "arguments", "call-end", "unparsed")
_WHOLE, _ANSWER, _CONTINUATION = range(3)

__all__ = [
    "Delta",
    "Encoded",
    "Parser",
    "Renderer",
    "Template",
    "Tokenizer",
    "answers",
    "convert",
    "parse",
    "renderer",
    "renderers",
]


def index_of(name: str, value: Any, choices: tuple[str, ...]) -> int:
    if value in choices:
        return choices.index(value)
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return value


def _texts(name: str, values: Sequence[str] | None) -> list[str] | None:
    if values is None:
        return None
    if isinstance(values, str):
        raise TypeError(f"{name} must be a list of strings, not a string")
    return [_text(f"{name}[{i}]", value) for i, value in enumerate(values)]


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def variables_of(variables: Mapping[str, Any] | None) -> dict[str, str]:
    """Values as JSON."""
    return {_text("variables", name): _json(f"variables[{name!r}]", value) for name, value in (variables or {}).items()}


def _config(config: Mapping[str, Any] | str | None) -> str | None:
    return config if config is None or isinstance(config, str) else _json("config", config)


def _conversation(messages: Messages, shape: Shape, variables: Mapping[str, Any] | None) -> tuple[Any, ...]:
    if isinstance(messages, (str, bytes)) or not isinstance(messages, (Mapping, Sequence)):
        raise TypeError(f"messages must be a list of messages or a request body, not {type(messages).__name__}")
    return index_of("shape", shape, _SHAPES), _json("messages", messages), variables_of(variables)


class Tokenizer:
    """A tokenizer of libtnk-tokenizers. It does not change; any thread may use it."""

    def __init__(self, handle: Any) -> None:
        if type(handle).__name__ != "PyCapsule":
            raise TypeError("use Tokenizer.load(), Tokenizer.from_bytes() or Tokenizer.from_transformers()")
        self._handle = handle
        self._info: tuple[int, int, int] = _native.tokenizer_info(handle)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, pattern: str | None = None) -> Tokenizer:
        """From a folder, or a tokenizer.json, a tekken.json or a file of tiktoken."""
        return cls(_future.native(_native.tokenizer_load, os.fspath(path), pattern))

    @classmethod
    def from_bytes(
        cls, data: bytes, *, config: Mapping[str, Any] | str | None = None, pattern: str | None = None
    ) -> Tokenizer:
        """From the contents of such a file, and of tokenizer_config.json."""
        return cls(_future.native(_native.tokenizer_read, data, _config(config), pattern))

    @classmethod
    def from_transformers(cls, tokenizer: Any) -> Tokenizer:
        """From a fast tokenizer of transformers, such as that of get_tokenizer()."""
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise TypeError(f"{type(tokenizer).__name__} has no backend_tokenizer: a fast tokenizer is needed")
        return cls.from_bytes(backend.to_str().encode(), config=_special_tokens(tokenizer))

    def encode(
        self, text: str, *, add_special: bool = False, split_special: bool = False, plain: bool = False, lossy: bool = False
    ) -> Any:
        """The ids, an array of int32. `plain` encodes all added tokens in the text as text."""
        flags = add_special * 1 | split_special * 2 | plain * 4 | lossy * 8
        found = _future.native(_native.tokenizer_encode, self._handle, _text("text", text), flags)
        return _results.array(found, "int32")

    def decode(self, tokens: Any, *, skip_special: bool = False) -> str:
        return str(_future.native(_native.tokenizer_decode, self._handle, tokens, 1 if skip_special else 0))

    def token_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        found = int(_native.tokenizer_id(self._handle, _text("token", token)))
        return found if found >= 0 else None

    @property
    def vocab_size(self) -> int:
        return self._info[0]

    @property
    def bos(self) -> int | None:
        return self._info[1] if self._info[1] >= 0 else None

    @property
    def eos(self) -> int | None:
        return self._info[2] if self._info[2] >= 0 else None


def _special_tokens(tokenizer: Any) -> dict[str, Any]:
    """What a tokenizer_config.json says of special tokens."""
    found: Mapping[str, Any] = getattr(tokenizer, "special_tokens_map", None) or {}
    return {name: str(token) for name, token in found.items() if not isinstance(token, (list, tuple))}


def handle_of(name: str, value: Any, kind: type) -> Any:
    if value is None:
        return None
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a tnk.chat.{kind.__name__}, not {type(value).__name__}")
    return value._handle  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Encoded:
    """Tokens (int32), the weight of each (float32), and the index of its message (int32),
    which is -1 for tokens of no message."""

    tokens: Any
    weights: Any
    messages: Any

    def __len__(self) -> int:
        return len(self.tokens)

    def input(self) -> ModelInput:
        """All tokens, as a prompt."""
        found: ModelInput = _types.get("ModelInput").from_ints(self.tokens.tolist())
        return found

    def datum(self) -> Datum:
        """A training example for cross_entropy: each token predicts the next one."""
        tokens = self.tokens.tolist()
        if len(tokens) < 2:
            raise ValueError(f"an example needs two tokens or more, not {len(tokens)}")
        inputs = {"target_tokens": tokens[1:], "weights": self.weights.tolist()[1:]}
        made: Datum = _types.get("Datum")(
            model_input=_types.get("ModelInput").from_ints(tokens[:-1]), loss_fn_inputs=inputs
        )
        return made


class Template:
    """A chat template of a model. It does not change; any thread may use it."""

    def __init__(self, handle: Any) -> None:
        if type(handle).__name__ != "PyCapsule":
            raise TypeError("use Template.load(), Template.from_text() or Template.from_transformers()")
        self._handle = handle
        self.stops: list[str] = _native.template_stops(handle)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        config: Mapping[str, Any] | str | None = None,
        name: str | None = None,
        stops: Sequence[str] | None = None,
    ) -> Template:
        """From the folder of a model, or from one of its files."""
        return cls._open(os.fspath(path), None, config, name, stops)

    @classmethod
    def from_text(
        cls,
        text: str | None = None,
        *,
        config: Mapping[str, Any] | str | None = None,
        name: str | None = None,
        stops: Sequence[str] | None = None,
    ) -> Template:
        """From Jinja. None is the template of the config, a tokenizer_config.json; without
        a config it is the plain template of roles."""
        return cls._open(None, None if text is None else _text("text", text), config, name, stops)

    @classmethod
    def from_transformers(cls, tokenizer: Any, *, name: str | None = None) -> Template:
        """From a tokenizer of transformers that has a chat template."""
        found = getattr(tokenizer, "chat_template", None)
        if isinstance(found, Mapping):
            if (name or "default") not in found:
                raise ValueError(f"the tokenizer has no template {name or 'default'!r}, only {', '.join(found)}")
            found = found[name or "default"]
        if not found:
            raise ValueError(f"{type(tokenizer).__name__} has no chat template")
        return cls.from_text(found, config=_special_tokens(tokenizer))

    @classmethod
    def _open(cls, path: str | None, text: str | None, config: Any, name: str | None, stops: Any) -> Template:
        return cls(_future.native(_native.template_open, path, text, _config(config), name, _texts("stops", stops)))

    def render(
        self,
        messages: Messages,
        *,
        shape: Shape = "openai",
        variables: Mapping[str, Any] | None = None,
        generation_prompt: bool | None = None,
        now: datetime.datetime | None = None,
    ) -> str:
        """The conversation as text."""
        options = _options(generation_prompt=generation_prompt, now=now)
        conversation = _conversation(messages, shape, variables)
        return str(_future.native(_native.chat_text, self._handle, conversation, options))

    def encode(
        self,
        tokenizer: Tokenizer | None,
        messages: Messages,
        *,
        shape: Shape = "openai",
        variables: Mapping[str, Any] | None = None,
        train_on: TrainOn = "nothing",
        roles: Sequence[str] | None = None,
        message_weights: Sequence[float] | None = None,
        generation_prompt: bool | None = None,
        by_parts: bool | None = None,
        text_roles: Sequence[str] | None = None,
        now: datetime.datetime | None = None,
    ) -> Encoded:
        """The conversation as tokens; `train_on` says which of them have a weight.

        `roles` belongs to "roles", and `message_weights`, a weight of each message, to
        "by-message". Messages of `text_roles` cannot contain control tokens. `now` is for
        templates that show the date; None is the local time."""
        options = _options(train_on, roles, message_weights, generation_prompt, by_parts, text_roles, now)
        return self._encode(tokenizer, _conversation(messages, shape, variables), options, _WHOLE)

    def examples(
        self,
        tokenizer: Tokenizer | None,
        messages: Messages,
        *,
        shape: Shape = "openai",
        variables: Mapping[str, Any] | None = None,
        text_roles: Sequence[str] | None = None,
        now: datetime.datetime | None = None,
    ) -> list[Encoded]:
        """One training example for each answer: the messages up to it, of which only the
        answer has weights. For templates that remove the thoughts of earlier answers."""
        conversation = _conversation(messages, shape, variables)
        options = _options(text_roles=text_roles, now=now)
        found = _future.native(_native.chat_answers, conversation)
        return [self._encode(tokenizer, conversation, options, _ANSWER, index) for index in found]

    def extend(
        self,
        tokenizer: Tokenizer | None,
        tokens: Any,
        messages: Messages,
        first: int,
        *,
        shape: Shape = "openai",
        variables: Mapping[str, Any] | None = None,
        by_parts: bool | None = None,
        text_roles: Sequence[str] | None = None,
        now: datetime.datetime | None = None,
    ) -> Any:
        """The tokens that follow `tokens`, a prompt with its sampled answer, for the new
        messages from index `first` on. Sampled tokens are never tokenized again."""
        options = _options(by_parts=by_parts, text_roles=text_roles, now=now)
        if isinstance(first, bool) or not isinstance(first, int) or first < 0:
            raise ValueError(f"first must be the index of a message, not {first!r}")
        conversation = _conversation(messages, shape, variables)
        return self._encode(tokenizer, conversation, options, _CONTINUATION, first, tokens).tokens

    def _encode(
        self, tokenizer: Any, conversation: Any, options: Any, mode: int, index: int = 0, tokens: Any = None
    ) -> Encoded:
        handle = handle_of("tokenizer", tokenizer, Tokenizer)
        ids, weights, owners = _future.native(
            _native.chat_encode, self._handle, handle, conversation, options, mode, index, tokens
        )
        return Encoded(
            _results.array(ids, "int32"), _results.array(weights, "float32"), _results.array(owners, "int32")
        )


def _choice(value: bool | None) -> int:
    return 0 if value is None else 1 if value else 2


def _options(
    train_on: TrainOn = "nothing",
    roles: Sequence[str] | None = None,
    message_weights: Sequence[float] | None = None,
    generation_prompt: bool | None = None,
    by_parts: bool | None = None,
    text_roles: Sequence[str] | None = None,
    now: datetime.datetime | None = None,
) -> tuple[Any, ...]:
    shown = datetime.datetime.now() if now is None else now
    return (
        _choice(generation_prompt),
        _choice(by_parts),
        index_of("train_on", train_on, _TRAINS),
        _texts("roles", roles),
        None if message_weights is None else list(message_weights),
        _texts("text_roles", text_roles),
        calendar.timegm(shown.timetuple()),
    )


def convert(messages: Messages, shape: Shape, to: Shape) -> dict[str, Any]:
    """Messages and tools in the format of another API."""
    found = _future.native(_native.chat_write, _conversation(messages, shape, None), index_of("to", to, _SHAPES))
    made: dict[str, Any] = json.loads(found)
    return made


def answers(messages: Messages, shape: Shape = "openai") -> list[int]:
    """The indices of the assistant's messages."""
    found: list[int] = _future.native(_native.chat_answers, _conversation(messages, shape, None))
    return found


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer. `call` is the index of the tool call, which has a `name` and an
    `id` when it begins."""

    kind: DeltaKind
    call: int
    text: str
    name: str | None = None
    id: str | None = None


class Parser:
    """Sampled tokens to a message, piece by piece.

    `prompt` is what the tokens continue, because it may have opened a block of thoughts;
    `stops` are Template.stops. The tools of `messages` give the types of arguments."""

    def __init__(
        self,
        tokenizer: Tokenizer | None,
        *,
        family: Family = "plain",
        prompt: Any = (),
        stops: Sequence[str] | None = None,
        messages: Messages | None = None,
        shape: Shape = "openai",
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        conversation = None if messages is None else _conversation(messages, shape, variables)
        self._has_ended = False
        self._handle = _future.native(
            _native.parser_open,
            handle_of("tokenizer", tokenizer, Tokenizer),
            index_of("family", family, _FAMILIES),
            conversation,
            prompt,
            _texts("stops", stops),
        )

    def feed(self, tokens: Any) -> list[Delta]:
        """What is certain after these tokens."""
        self._check()
        return _deltas(_future.native(_native.parser_feed, self._handle, tokens))

    def finish(self) -> tuple[list[Delta], dict[str, Any]]:
        """The rest, and the message. Text that is no valid call is in its member "extra"."""
        self._check()
        self._has_ended = True
        deltas, message = _future.native(_native.parser_finish, self._handle)
        return _deltas(deltas), json.loads(message)

    def _check(self) -> None:
        if self._has_ended:
            raise ValueError("the answer has ended; make a Parser for the next one")


def _deltas(rows: list[tuple[int, int, str, str | None, str | None]]) -> list[Delta]:
    return [Delta(_KINDS[kind], call, text, name, id) for kind, call, text, name, id in rows]


def parse(tokenizer: Tokenizer | None, tokens: Any, **options: Any) -> dict[str, Any]:
    """The message of a whole answer. Options are those of Parser."""
    parser = Parser(tokenizer, **options)
    parser.feed(tokens)
    return parser.finish()[1]


@dataclass(frozen=True, slots=True)
class Renderer:
    """The settings for a renderer of Tinker's cookbook. `note` says how it differs."""

    name: str
    family: Family
    variables: dict[str, Any]
    stops: list[str]
    note: str | None


@functools.cache
def renderers() -> tuple[str, ...]:
    """The names of all renderers."""
    return tuple(_native.renderers())


def renderer(name: str) -> Renderer:
    """The settings for a renderer, such as "qwen3"."""
    found = _native.renderer(_text("name", name))
    if found is None:
        raise ValueError(f"there is no renderer {name!r}; renderers() has all names")
    family, variables, stops, note = found
    values = {key: json.loads(value) for key, value in variables.items()}
    return Renderer(name, _FAMILIES[family], values, stops, note)
