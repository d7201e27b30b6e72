# SPDX-License-Identifier: MIT
"""Templates put together at random from what the language has."""

NAMES = ["i", "z", "neg", "f", "s", "u", "e", "l", "ls", "t", "d", "dd", "n",
         "yes", "no", "objs", "nope", "m"]
VARIABLES = {
    "i": 7, "z": 0, "neg": -3, "f": 2.5, "s": "Hello World", "u": "héßΣ 日本",
    "e": "", "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "t": [[1, "x"], [2, "y"]],
    "d": {"a": 1, "B": "two", "items": 5, "c": None},
    "dd": {"k": {"x": [1, {"y": 2}]}, "z": "q"}, "n": None, "yes": True,
    "no": False, "m": [[1, 2], [3]],
    "objs": [{"name": "ann", "age": 3, "on": True},
             {"name": "Bob", "age": 1, "on": False},
             {"name": "cy", "age": 3}],
}
LITERALS = ["0", "1", "2", "-1", "10", "1.5", "0.0", "1e3", "'a'", "'l'", "''",
            "'x,y,,z'", "' pad '", '"q\\"\\n\\t\\u00e9"', "true", "false", "none",
            "[]", "{}", "()", "[1, 'a', none]", "(1, 2)", "(1,)", "{'a': 1}",
            "{1: 'x', 'k': [2]}", "1_000", "0x1f", "'%s'", "'%d-%s'", "'{} {a}'"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=",
          "in", "not in", "and", "or"]
FILTERS = ["abs", "batch(2)", "batch(2, 'x')", "capitalize", "center(9)",
           "count", "d('q')", "default('q', true)", "default", "dictsort",
           "dictsort(false, 'value')", "dictsort(reverse=true)", "e", "escape",
           "first", "float", "float(1.5)", "forceescape", "format(1, 2)",
           "format(a=1)", "groupby('age')", "groupby('name')", "indent",
           "indent(2, true)", "indent('> ', blank=true)", "int", "int(5)",
           "int(0, 16)", "items", "join", "join(',')", "join('-', 'name')",
           "join('|', attribute='age')", "last", "length", "list", "lower",
           "map('upper')", "map(attribute='name')", "map('length')",
           "map(attribute='age', default=9)", "map('int')", "max", "min",
           "max(attribute='age')", "reject", "reject('odd')",
           "rejectattr('on')", "replace('l', 'L')", "replace('', '-')",
           "replace('l', 'L', 1)", "reverse", "round", "round(1)",
           "round(1, 'floor')", "round(0, 'ceil')", "safe", "select",
           "select('string')", "select('in', [1, 'a'])", "selectattr('on')",
           "selectattr('age', 'equalto', 3)", "selectattr('age', 'gt', 2)",
           "slice(2)", "slice(2, 'z')", "sort", "sort(true)",
           "sort(attribute='age')", "sort(attribute='age,name')",
           "sort(case_sensitive=true)", "string", "sum", "sum('age')",
           "sum(start=10)", "title", "tojson", "tojson(indent=1)",
           "tojson(ensure_ascii=true)", "tojson(sort_keys=true)",
           "tojson(separators=(',', ':'))", "trim", "trim('Hd')",
           "truncate(5)", "truncate(5, true)", "truncate(7, leeway=0)",
           "unique", "unique(true)", "unique(attribute='age')", "upper",
           "wordcount", "attr('name')", "nofilter"]
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable",
         "sequence", "boolean", "true", "false", "integer", "float", "number",
         "callable", "escaped", "odd", "even", "lower", "upper",
         "divisibleby 2", "divisibleby(3)", "in [1, 'a', none]", "eq 1",
         "equalto('a')", "ne 2", "lt 3", "ge(1)", "sameas none",
         "sameas(true)", "not none", "not defined", "not string", "filter",
         "test", "notest"]
METHODS = ["split()", "split(',')", "split('l', 1)", "split(none, 1)",
           "rsplit(' ', 1)", "rsplit()", "rsplit(none, 1)", "splitlines()",
           "splitlines(true)", "strip()", "strip('Hd ')", "lstrip()",
           "rstrip('ld')", "startswith('H')", "endswith(('d', 'x'))",
           "startswith('e', 1)", "replace('l', '')", "join(ls)", "join(l)",
           "find('o')", "find('o', 5)", "rfind('o')", "index('H')", "count('l')",
           "upper()", "lower()", "title()", "capitalize()", "swapcase()",
           "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()",
           "islower()", "istitle()", "isnumeric()", "isdecimal()",
           "partition('o')", "rpartition('o')", "zfill(14)", "center(15, '*')",
           "ljust(13, '.')", "rjust(13)", "format(1, a=2)", "removeprefix('He')",
           "removesuffix('ld')", "items()", "keys()", "values()", "get('a')",
           "get('q', 5)", "copy()", "count(1)", "index(2)", "append(1)",
           "update({})", "pop()", "encode", "__class__", "nomethod()", "a", "B",
           "items", "name", "0", "k.x"]
SUBSCRIPTS = ["[0]", "[-1]", "[5]", "['a']", "['items']", "['name']", "[1:]",
              "[:-1]", "[::2]", "[::-1]", "[1:3]", "[-3:]", "[5:1:-2]", "[none]",
              "[1.0]", "[true]", "[:none]", "['k']['x'][1].y"]
CALLS = ["range({})", "range(1, {})", "range(5, 0, -2)", "dict(a={})",
         "dict({}, b=2)", "namespace(a={}).a", "mac({})", "mac({}, y={})",
         "mac(*l)", "mac(**{'x': 1})", "joiner('|')()", "cycler(1, 2).next()",
         "loop.index", "raise_exception({})", "strftime_now('%d %b %Y %H:%M')",
         "{}({})", "kw({}, 1, q=2)"]


def expression(rng, depth=3):
    draw = rng.random()
    if depth == 0 or draw < 0.12:
        return rng.choice(LITERALS) if rng.random() < 0.4 else rng.choice(NAMES)
    one = expression(rng, depth - 1)
    if draw < 0.34:
        return f"{one}|{rng.choice(FILTERS)}"
    if draw < 0.42:
        return f"({one})|{rng.choice(FILTERS)}"
    if draw < 0.58:
        return f"{one} {rng.choice(BINARY)} {expression(rng, depth - 1)}"
    if draw < 0.64:
        return f"{one} is {rng.choice(TESTS)}"
    if draw < 0.73:
        return f"{rng.choice(NAMES)}.{rng.choice(METHODS)}"
    if draw < 0.77:
        return f"({one}).{rng.choice(METHODS)}"
    if draw < 0.84:
        return f"{rng.choice(NAMES)}{rng.choice(SUBSCRIPTS)}"
    if draw < 0.87:
        return f"{rng.choice(CALLS)}".replace("{}", one)
    if draw < 0.89:
        return f"{rng.choice(['not ', '-', '+'])}{one}"
    if draw < 0.92:
        return f"{one} if {expression(rng, depth - 1)} else {rng.choice(NAMES)}"
    if draw < 0.93:
        return f"({one} if {rng.choice(NAMES)})"
    if draw < 0.95:
        return f"[{one}, {rng.choice(NAMES)}]"
    if draw < 0.96:
        return f"{{{rng.choice(LITERALS)}: {one}}}"
    if draw < 0.975:
        return f"({one}, {expression(rng, depth - 1)})"
    if draw < 0.985:
        return f"{rng.choice(NAMES)} < {one} <= {rng.choice(NAMES)}"
    return f"{one} ** {rng.choice(['2', '3', '-1', '0.5'])}"


TARGETS = ["x", "y", "i", "s", "a, b", "(a, b)", "x, (y, b)", "ns.v"]
ENDS = ["%}", "-%}", "+%}", "%}"]
BEGINS = ["{%", "{%-", "{%+", "{%"]


def tag(rng, text):
    return f"{rng.choice(BEGINS)} {text} {rng.choice(ENDS)}"


def data(rng):
    return rng.choice(["", " ", "\n", "  \n  ", "text", "a\n", "\n  b", "\t",
                       " x ", "{# c #}", "{#- c -#}\n", "\n{# c #}\n", "}}", "%"])


def body(rng, depth, in_loop):
    return "".join(statement(rng, depth - 1, in_loop)
                   for _ in range(rng.randrange(1, 4)))


def output(rng, in_loop):
    text = expression(rng, rng.randrange(1, 3))
    if in_loop and rng.random() < 0.4:
        text = rng.choice(["loop.index", "loop.index0", "loop.first",
                           "loop.last", "loop.length", "loop.revindex",
                           "loop.previtem", "loop.nextitem", "loop.depth",
                           "loop.cycle('a', 'b')", "loop.changed(x)", "loop",
                           "x", "y", "a ~ b", "ns.v"])
    left, right = rng.choice(["{{", "{{-", "{{"]), rng.choice(["}}", "-}}", "}}"])
    return f"{left} {text} {right}"


def loop(rng, depth):
    over = rng.choice(["l", "ls", "t", "d", "objs", "s", "e", "range(3)", "m",
                       "d.items()", "t|reverse", "nope", "l|select('odd')",
                       "d|dictsort", expression(rng, 1)])
    test = rng.choice([""] * 6 + [" if x is odd", " if loop is defined",
                                  " if not ns.v", f" if {expression(rng, 1)}"])
    again = rng.choice([""] * 8 + [" recursive"])
    text = tag(rng, f"for {rng.choice(TARGETS[:-1])} in {over}{test}{again}")
    text += body(rng, depth, True)
    if again and rng.random() < 0.7:
        text += "{{ loop(x) if x is iterable and x is not string }}"
    if rng.random() < 0.2:
        text += tag(rng, rng.choice(["break", "continue"]))
    if rng.random() < 0.2:
        text += tag(rng, "else") + body(rng, depth, False)
    return text + tag(rng, "endfor")


def choice(rng, depth, in_loop):
    text = tag(rng, f"if {expression(rng, 2)}") + body(rng, depth, in_loop)
    if rng.random() < 0.3:
        text += tag(rng, f"elif {expression(rng, 1)}")
        text += body(rng, depth, in_loop)
    if rng.random() < 0.5:
        text += tag(rng, "else") + body(rng, depth, in_loop)
    return text + tag(rng, "endif")


def macro(rng, depth):
    name = rng.choice(["mac", "kw", "mac"])
    params = rng.choice(["x", "x, y=2", "x=i, y=s", "", "x, caller=none"])
    text = tag(rng, f"macro {name}({params})")
    text += rng.choice(["", "{{ varargs }}{{ kwargs }}", "{{ caller() }}",
                        "{{ caller(1) if caller }}", "{{ x }}|{{ y }}"])
    return text + body(rng, depth, False) + tag(rng, "endmacro")


def statement(rng, depth, in_loop=False):
    draw = rng.random()
    if depth == 0 or draw < 0.25:
        return data(rng) + output(rng, in_loop) + data(rng)
    if draw < 0.4:
        return tag(rng, f"set {rng.choice(TARGETS)} = {expression(rng, 2)}")
    if draw < 0.45:
        end = rng.choice(["", " | upper", " | replace('a', 'b') | length"])
        return (tag(rng, f"set {rng.choice(['x', 's', 'ns.v'])}{end}") +
                body(rng, depth, in_loop) + tag(rng, "endset"))
    if draw < 0.6:
        return choice(rng, depth, in_loop)
    if draw < 0.78:
        return loop(rng, depth)
    if draw < 0.85:
        return macro(rng, depth)
    if draw < 0.89:
        call = rng.choice(["call", "call(x)", "call(a, b=1)"])
        return (tag(rng, f"{call} {rng.choice(['mac(1)', 'kw()', 'mac(l, y=2)'])}")
                + body(rng, depth, False) + tag(rng, "endcall"))
    if draw < 0.92:
        return (tag(rng, f"filter {rng.choice(['upper', 'trim|title', 'length'])}")
                + body(rng, depth, in_loop) + tag(rng, "endfilter"))
    if draw < 0.95:
        return (tag(rng, f"with x = {expression(rng, 1)}, y = x")
                + body(rng, depth, in_loop) + tag(rng, "endwith"))
    if draw < 0.97:
        return tag(rng, "raw") + "{{ x }}{% y %}" + tag(rng, "endraw")
    return tag(rng, "generation") + body(rng, depth, False) + tag(
        rng, "endgeneration")


def template(rng):
    if rng.random() < 0.5:
        return "{{ " + expression(rng) + " }}"
    text = "{% set ns = namespace(v=0) %}" if rng.random() < 0.7 else ""
    return text + "".join(statement(rng, 3)
                          for _ in range(rng.randrange(1, 5))) + rng.choice(
                              ["", "\n", "\n\n"])
