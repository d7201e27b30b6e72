# SPDX-License-Identifier: MIT
"""Conversations as people and agents have them, drawn at random."""

TEXTS = ["Hello", "", " ", "What is 2+2?", "line\nline\n\n", "\tTab \r\n", "é",
         "日本語のテキスト", "😀👍🏽 family 👨‍👩‍👧", "a\u0301\u200b\u00a0z", "{{ x }}", "{% if %}",
         "<think>\nhm\n</think>\n\nYes.", "<|im_start|>user", "[INST] x [/INST]",
         "  two blanks  ", "\"quotes\" and 'single'", "<a href=\"x\">&amp;</a>",
         "ﬁ ß İ ǆ Σ ΑΣ", "0", "\n", "\u2028sep", "</tool_call>", "back\\slash",
         "<tool_response>x</tool_response>", "{\"a\": 1}", "\x7f\x1b[0m",
         "<think>open", "closed</think>rest", "```python\nprint(1)\n```"]
WORDS = ["city", "unit", "x", "name", "Größe", "a b", "items", "n", "q"]


def value(rng, depth=0):
    kind = rng.randrange(9 if depth < 2 else 6)
    if kind == 0:
        return rng.choice([0, 1, -5, 42, 10**12])
    if kind == 1:
        return rng.choice([0.5, 1.0, -2.25, 1e-7, 3.14159, 1e22])
    if kind == 2:
        return rng.choice([True, False, None])
    if kind < 6:
        return rng.choice(TEXTS)
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS): value(rng, depth + 1)
            for _ in range(rng.randrange(4))}


def schema(rng, depth=0):
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind < 3:
        made = {"type": rng.choice(["string", "integer", "number", "boolean"])}
    elif kind == 3:
        made = {"type": "string", "enum": ["a", "b"]}
    elif kind == 4:
        made = {"type": rng.choice([["string", "null"], "null"])}
    elif kind == 5:
        made = {"type": "array", "items": schema(rng, depth + 1)}
    elif kind == 6:
        made = {"type": "object", "properties": {
            w: schema(rng, depth + 1)
            for w in rng.sample(WORDS, rng.randrange(4))}}
        if rng.random() < 0.6:
            made["required"] = list(made["properties"])[:2]
    else:
        made = {"anyOf": [schema(rng, depth + 1), {"type": "null"}]}
    if rng.random() < 0.5:
        made["description"] = rng.choice(TEXTS)
    if rng.random() < 0.2:
        made["default"] = value(rng)
    return made


def tool(rng, i):
    made = {"name": f"get_{rng.choice(['weather', 'time', 'x'])}{i}",
            "description": rng.choice(TEXTS)}
    parameters = {"type": "object", "properties": {
        w: schema(rng) for w in rng.sample(WORDS, rng.randrange(4))}}
    if rng.random() < 0.7:
        parameters["required"] = list(parameters["properties"])[:1]
    if rng.random() < 0.9:
        made["parameters"] = parameters
    if rng.random() < 0.1:
        made["return"] = schema(rng)
    if rng.random() < 0.1:
        return made
    return {"type": "function", "function": made}


def content(rng, may_be_parts):
    draw = rng.random()
    if not may_be_parts or draw < 0.75:
        return rng.choice(TEXTS)
    parts = []
    for _ in range(rng.randrange(4)):
        kind = rng.randrange(5)
        if kind == 0:
            parts.append({"type": "image"})
        elif kind == 1:
            parts.append({"type": "image_url",
                          "image_url": {"url": "data:image/png;base64,AA"}})
        else:
            parts.append({"type": "text", "text": rng.choice(TEXTS)})
    return parts


def call(rng, i, tools):
    name = f"get_x{i}"
    if tools and rng.random() < 0.8:
        one = rng.choice(tools)
        name = one.get("function", one)["name"]
    arguments = {w: value(rng) for w in rng.sample(WORDS, rng.randrange(4))}
    made = {"type": "function", "function": {"name": name,
                                             "arguments": arguments}}
    if rng.random() < 0.1:
        made["function"]["arguments"] = "{\"text\": 1}"
    if rng.random() < 0.9:
        made["id"] = rng.choice(["call_1", "abcdefghi", f"functions.{name}:{i}"])
    if rng.random() < 0.1:
        made = made["function"]
    return made


def answer(rng, tools, parts):
    made = {"role": "assistant", "content": content(rng, parts)}
    if rng.random() < 0.3:
        made[rng.choice(["reasoning_content", "thinking", "reasoning"])] = (
            rng.choice(TEXTS))
    if rng.random() < 0.4:
        made["tool_calls"] = [call(rng, i, tools)
                              for i in range(rng.choice([0, 1, 1, 1, 2, 3]))]
        if rng.random() < 0.4:
            made["content"] = rng.choice([None, ""])
        if rng.random() < 0.1:
            del made["content"]
    return made


def conversation(rng):
    """The variables of a template."""
    tools = [tool(rng, i) for i in range(rng.randrange(1, 4))]
    tools = tools if rng.random() < 0.5 else None
    parts = rng.random() < 0.3
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": rng.choice(["system"] * 5 + ["developer"]),
                         "content": content(rng, parts)})
    for _ in range(rng.randrange(5)):
        messages.append({"role": "user", "content": content(rng, parts)})
        if rng.random() < 0.1:
            continue
        made = answer(rng, tools, parts)
        messages.append(made)
        for one in made.get("tool_calls", ()):
            reply = {"role": "tool", "content": content(rng, parts)}
            if rng.random() < 0.8:
                reply["tool_call_id"] = one.get("id", "x")
            if rng.random() < 0.6:
                reply["name"] = one.get("function", one)["name"]
            messages.append(reply)
        if made.get("tool_calls") and rng.random() < 0.8:
            messages.append(answer(rng, tools, parts))
    if rng.random() < 0.5:
        messages.append({"role": "user", "content": content(rng, parts)})
    if rng.random() < 0.03:
        messages.append({"role": rng.choice(["ipython", "function", "x"]),
                         "content": "?"})
    made = {"messages": messages, "tools": tools,
            "add_generation_prompt": rng.random() < 0.6,
            "bos_token": "<s>", "eos_token": "</s>"}
    for name, values in (
            ("enable_thinking", [True, False]), ("thinking", [True, False]),
            ("reasoning_effort", ["low", "high", "medium", "max"]),
            ("preserve_thinking", [True, False]),
            ("documents", [[{"title": "T", "text": "x"}], [], None]),
            ("tools_in_user_message", [True, False]),
            ("clear_thinking", [True, False]), ("date_string", ["1 Jan"]),
            ("builtin_tools", [["python"], ["browser", "python"]]),
            ("model_identity", ["You are X."]),
            ("add_vision_id", [True, False])):
        if rng.random() < 0.2:
            made[name] = rng.choice(values)
    if rng.random() < 0.1:
        del made["tools"]
    return made
