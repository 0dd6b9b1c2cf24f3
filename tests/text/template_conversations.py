"""Generated conversations for template_real.py: what clients send, and what they shouldn't but do."""

import json

WORDS = """Hello what is the capital of France? 👍 中文 naïve it's "q" <b>&amp; \\n {{ x }} {% if %} <|im_end|> </think> <think> [INST] [/INST]
 <tool_call> 3.14 null None <|start|> </s> é\u2028z""".split(" ")
TYPES = [{"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]},
         {"type": "string", "enum": ["celsius", "fahrenheit"]}, {"type": "array", "items": {"type": "string"}},
         {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
         {"type": "object", "properties": {"x": {"type": "number"}, "deep": {"type": "object", "properties": {}}}},
         {"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"$ref": "#/$defs/P"}, {"type": "string", "format": "date", "default": "today", "nullable": True}, {}]  # fmt: skip
VALUES = ["Paris", "", "it's \"x\"\n</tool_call>", 7, -3, 2.5, 1e21, True, False, None, [], ["a", 1], [{"id": 1}], {}, {"x": 1.0, "deep": {"k": [None]}}, "中 👍", '{"a": 1}']
NAMES = ["get_weather", "search.web", "python", "browser", "send_email", "f"]


def text(rng):
    kind = rng.random()
    if kind < 0.08:
        return ""
    if kind < 0.12:
        return rng.choice(["\n", "  ", "<think>only", "</think>", "a</think>b</think>c", "<think></think>", "[THINK]t[/THINK]x", "data:image/png;base64,AA=="])
    return rng.choice(["", "", " ", "\n\n"]) + " ".join(rng.choices(WORDS, k=rng.randint(1, 12))) + rng.choice(["", "", "\n", "  "])


def parts(rng):
    out = []
    for _ in range(rng.randint(0, 3)):
        kind = rng.random()
        if kind < 0.7:
            out.append({"type": "text", "text": text(rng)})
        elif kind < 0.85:
            out.append(rng.choice([{"type": "image"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}, {"type": "audio"}, {"type": "video"}]))
        else:
            out.append(rng.choice([{"type": "thinking", "thinking": text(rng)}, {"type": "refusal", "refusal": "no"}, {"text": "untyped"}]))
    return out


def content(rng, wild):
    kind = rng.random()
    if kind < 0.82 or not wild and kind < 0.98:
        return text(rng)
    if not wild or kind < 0.92:
        return parts(rng) or [{"type": "text", "text": text(rng)}]
    return rng.choice([None, None, parts(rng), [], [text(rng)], {"text": "object"}, 5])


def tool(rng):
    properties = {name: dict(rng.choice(TYPES)) for name in rng.sample(["city", "unit", "days", "query", "opts"], rng.randint(0, 4))}
    for schema in properties.values():
        if rng.random() < 0.6:
            schema["description"] = text(rng)
    parameters = {"type": "object", "properties": properties}
    if rng.random() < 0.7:
        parameters["required"] = [name for name in properties if rng.random() < 0.6]
    if rng.random() < 0.2:
        parameters["additionalProperties"] = False
    if rng.random() < 0.1:
        parameters["$defs"] = {"P": {"type": "string"}}
    function = {"name": rng.choice(NAMES), "description": text(rng), "parameters": parameters}
    if rng.random() < 0.1:
        del function["description"]
    if rng.random() < 0.08:
        function["parameters"] = rng.choice([{}, None, {"type": "object"}])
    if rng.random() < 0.1:
        function["return"] = {"type": "string"}
    if rng.random() < 0.1:
        function["strict"] = True
    return {"type": "function", "function": function} if rng.random() < 0.96 else function


def call(rng):
    arguments = {name: rng.choice(VALUES) for name in rng.sample(["city", "unit", "days", "query", "opts"], rng.randint(0, 3))}
    if rng.random() < 0.3:
        arguments = rng.choice([json.dumps(arguments), json.dumps(arguments, ensure_ascii=False), "", "{", "text"])
    out = {"type": "function", "function": {"name": rng.choice(NAMES), "arguments": arguments}}
    if rng.random() < 0.85:
        out["id"] = rng.choice(["call12345", "abcdefghi", "functions.get_weather:0", "1"])
    if rng.random() < 0.05:
        out = out["function"]
    return out


def assistant(rng, wild, calls):
    out = {"role": "assistant", "content": content(rng, wild)}
    if rng.random() < 0.25:
        out["content"] = "<think>\n" + text(rng) + rng.choice(["\n</think>\n\n", "</think>", ""]) + text(rng)
    if rng.random() < 0.35:
        out[rng.choice(["reasoning_content", "reasoning_content", "reasoning", "thinking"])] = rng.choice([text(rng), text(rng), "", None])
    if calls:
        out["tool_calls"] = [call(rng) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        kind = rng.random()
        if kind < 0.3:
            out["content"] = rng.choice(["", "", None])
        elif kind < 0.33:
            del out["content"]
    elif wild and rng.random() < 0.2:
        out["tool_calls"] = rng.choice([[], None])
    return out


def result(rng, wild, made):
    out = {"role": "tool", "content": rng.choice([text(rng), json.dumps({"temp": 21.5}), "[1, 2]", "7"])}
    if wild and rng.random() < 0.3:
        out["content"] = rng.choice([{"temp": 21.5}, [1, 2], None, parts(rng)])
    if "id" in made and rng.random() < 0.9:
        out["tool_call_id"] = made["id"]
    if rng.random() < 0.7:
        out["name"] = made.get("function", made)["name"]
    return out


def conversation(rng):
    wild = rng.random() < 0.3
    with_tools = rng.random() < 0.55
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system" if rng.random() < 0.93 else "developer", "content": content(rng, wild)})
    for _ in range(rng.choice([1, 1, 2, 3, 4])):
        messages.append({"role": "user", "content": content(rng, wild)})
        rounds = rng.choice([0, 0, 1, 1, 2]) if with_tools else 0
        for _ in range(rounds):
            messages.append(assistant(rng, wild, True))
            for made in messages[-1]["tool_calls"]:
                messages.append(result(rng, wild, made))
        messages.append(assistant(rng, wild, False))
    kind = rng.random()
    if kind < 0.55:
        messages.append({"role": "user", "content": content(rng, wild)})
    elif kind < 0.75 and len(messages) > 1:
        messages.pop()  # a user's message or tool results at the end; else the assistant's is gone on with
    if wild and rng.random() < 0.25:
        at = rng.randint(0, len(messages))
        messages.insert(at, rng.choice([{"role": "system", "content": "late"}, {"role": "weird", "content": "x"}, {"role": "user"},
                                        {"content": "no role"}, {"role": "tool", "content": "orphan"}, {"role": "user", "content": "twice"}]))  # fmt: skip
    if wild and rng.random() < 0.03:
        messages = []
    if rng.random() < 0.1 and messages:
        messages[rng.randrange(len(messages))]["name"] = "ann"
    variables = {"messages": messages, "add_generation_prompt": rng.random() < 0.6, "bos_token": "<s>", "eos_token": "</s>"}
    if with_tools and rng.random() < 0.9:
        variables["tools"] = [tool(rng) for _ in range(rng.choice([1, 1, 2, 3]))]
    elif rng.random() < 0.7:
        variables["tools"] = rng.choice([None, []])  # transformers always hands it over
    if rng.random() < 0.5:
        variables["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.06:
        del variables[rng.choice(["bos_token", "eos_token", "add_generation_prompt"])]
    if rng.random() < 0.5:  # firefunction reads both and has no default for either
        variables |= {"functions": json.dumps(variables.get("tools")), "datetime": "2026-12-01"}
    for name, values in KWARGS:
        if rng.random() < 0.06:
            variables[name] = rng.choice(values)
    return variables


KWARGS = [
    ("documents", [None, [], [{"title": "T", "text": "a b", "snippet": "s"}, {"title": "U", "text": "", "snippet": "t"}]]),
    ("thinking", [True, False]),
    ("reasoning_effort", ["low", "medium", "high", "max", "none"]),
    ("thinking_budget", [0, 512, 4096, -1]),
    ("clear_thinking", [True, False]),
    ("preserve_thinking", [True, False]),
    ("date_string", ["26 Jul 2024"]),
    ("builtin_tools", [["python", "browser"], ["code_interpreter"], []]),
    ("tools_in_user_message", [True, False]),
    ("custom_tools", [None, [{"type": "function", "function": {"name": "c", "description": "d", "parameters": {"type": "object", "properties": {}}}}]]),
    ("xml_tools", [["x"]]),
    ("controls", [{"length": "short"}]),
    ("citations", [True]),
    ("model_identity", ["You are T."]),
    ("add_vision_id", [True]),
    ("continue_final_message", [True]),
    ("keep_past_thinking", [True]),
    ("drop_thinking", [False]),
    ("image_token", ["<image>"]),
]
