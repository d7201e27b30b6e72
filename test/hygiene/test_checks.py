#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of this folder find what they are for: each gets a good tree,
then the same tree with one fault.

usage: test_checks.py HYGIENE_DIR COMPILER...
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import check_layers

COMPILER = sys.argv[2:]
BETTER = ("# More\n\n### 9.13 Ids\n\nMust: must refuse blanks, `?` in every id "
          "before sending, keep `:` raw.\n\n### 11.10 Better\n\n| topic | do |\n"
          "|---|---|\n| cells | clean |\n| time | little |\n")
SHOWN = ("| S1.4a | Tea. |\n| A2 | Milk. |\n| S-2 | Sugar. |\n| 9.13 | blanks | `P9_13_blanks` |\n"
         "| 9.13 | `?` | `P9_13_marks` |\n| 9.13 | keep `:` raw | `P9_13_b`, `P9_13_m` |\n"
         "| 11.10 | cells | `P11_10_cells` |\n| 11.10 | time | `P11_10_time`: not built |\n")
LAYERS = "test/hygiene/layers.txt"
FEATURES = ("fast", "small", "round", "docs")
DECIDED = "-Dfast=enabled -Dsmall=disabled -Dround=enabled\n"
LIBRARIES = "aa bb cc dd ee\n"
LOOKED_FOR = ("library libaa >= 1", "header bb.h", "library cc", "header dd/dd.h", "library libee")
GOOD = {
    "src/README.md": check_layers.BEGIN + check_layers.draw({"lib/base": set()}) + check_layers.END,
    LAYERS: "# Rows\nlib/base:\n",
    "src/lib/base/README.md": "Base.\n\nMay include: no other folder.\n",
    "src/lib/base/a.h": "int a(void);\n",
    "src/lib/base/a.c": '#include "lib/base/a.h"\n\nint a(void) {\n  return 1;\n}\n',
    "src/lib/base/b.h": '#include "lib/base/a.h"\n'
                    "/* What b is. Protocol: calls, making tea; calls,\n"
                    " * coffee. See lib/base/a.h. */\n"
                    "typedef enum { ON } b_state_t; /* On. */\n",
    "src/lib/wire/README.md": "Codec.\n",
    "src/lib/wire/protocol/README.md": "Protocol.\n",
    "src/lib/wire/protocol/calls.md": "# Calls\n\n## 1.2 Making tea (hot)\n\n"
                                   "| call | body |\n|---|---|\n"
                                   "| `coffee` | none |\n",
    "src/lib/wire/protocol/rest-and-cli.md": BETTER,
    "src/lib/base/b.c": '#include "lib/base/a.h"\n\nint b(void) {\n  return a();\n}\n',
    "src/lib/base/x.c": "int tnk_x(void) {\n  return 0;\n}\n",
    "src/lib/base/main.c": '#include "lib/base/options.h"\n\n#define R(...)\n'
                       "TNK__STRUCTS_IN(R)\nint b(void);\n\nint main(void) {\n  return b();\n}\n",
    "include/tnk/x.h": "/** Doc. Thread: any. Since: 0.1 */\n"
                       "TNK_API int tnk_x(void);\n",
    "include/tnk/s.h": "/** A struct. */\n"
                       "typedef struct {\n  size_t size; /**< Set. */\n"
                       "  int a;\n  int reserved;\n} tnk_s_t;\n"
                       "#define TNK_S_INIT TNK_SIZED(tnk_s_t)\n",
    "src/lib/base/options.h": "#define TNK__STRUCTS_IN(X) \\\n"
                          "  X(tnk_s_t, TNK_S_INIT, reserved, 16, \\\n"
                          "    reserved, YES)\n",
    "include/tnk/error.h": "#define TNK_ERRORS(XX) XX(EINVAL, -1, \"no\")\n",
    "test/t.c": "TEST(S1_4_P1_2_tea) {\n  CHECK_INT(a(), TNK_EINVAL);\n}\n"
                "TEST(P9_13_blanks_are_refused) {\n}\nTEST(P9_13_marks) {\n}\n",
    "test/t.py": "check(1, \"S_2_P11_10_no\")\ncheck(2, \"P11_10_cells_are_clean\")\n",
    "test/base/test_a.c": "TEST(milk) {\n}\n",
    "test/mutants/mutants.txt": "== m1 S1.4a, P1.2: nothing\nfile: src/lib/base/a.c\n"
                                "tests: base_a\n-  return 1;\n+  return 2;\n",
    "test/REQUIREMENTS.md": "| row | demand |\n|---|---|\n" + SHOWN,
    "test/abi/caller.c": "MAKE(tnk_s_t, s, TNK_S_INIT);\n",
    "bench/t.c": "", "examples/t.c": "",
    **{f".ci/debian/libtnk{n}0.1.install": "" for n in ("", "-a", "-b", "-c", "-d", "-e", "-f")},
    ".ci/debian/changelog": "tnk (0.1.2) unstable\n",
    ".ci/debian/control": "Package: libtnk0.1\nDepends:\n libtnk0.1 (= 1),\n" + LIBRARIES,
    ".ci/debian/rules": "-Dcli=false " + DECIDED,
    ".ci/packages/alpine/APKBUILD": "pkgver=0.1.2\n" + DECIDED + LIBRARIES,
    ".ci/packages/homebrew/tnk.rb": '  url "https://a/tnk-0.1.2.tar.xz"\n' + DECIDED + LIBRARIES,
    ".ci/packages/vcpkg/portfile.cmake": DECIDED,
    ".ci/packages/vcpkg/vcpkg.json": '{\n  "version": "0.1.2"\n' + LIBRARIES + "}\n",
    "src/bindings/node/package.json": '{\n  "version": "0.1.2"\n}\n',
    "src/bindings/python/pyproject.toml": 'version = "0.1.2"\n',
    "meson.build": "project('tnk', 'c',\n  version: '0.1.2',\n)\n",
    "meson_options.txt": "option('cli', type: 'boolean')\n" +
                         "".join(f"option('{n}', type: 'feature')\n" for n in FEATURES),
    "test/install.sh": "".join(f"build | {n} | {kind} | lib{n}-dev\n" for n, kind in
                               zip(LIBRARIES.split(), LOOKED_FOR)),
}
MARKS = {".h": "/* SPDX-License-Identifier: MIT */\n",
         ".c": "/* SPDX-License-Identifier: MIT */\n",
         ".py": "# SPDX-License-Identifier: MIT\n",
         ".sh": "# SPDX-License-Identifier: MIT\n",
         ".toml": "# SPDX-License-Identifier: MIT\n"}
CALLS = "test/hygiene/calls.txt"
A_CALLS_C = "int c(void);\n\nint a(void) {\n  return c();\n}\n"
C = "int b(void);\n\nint c(void) {\n  return b();\n}\n"
LONG_BODY = "int a(void) {\n" + "  a();\n" * 59 + "}\n"
# check, the folder it is given, what is changed, words of its complaint.
FAULTS = [
    ("check_sizes.py", ".", {"src/lib/base/a.c": LONG_BODY}, "a has 61 lines"),
    ("check_sizes.py", ".", {"src/lib/base/a.c": "\n" * 901}, "901 lines"),
    ("check_sizes.py", ".", {"examples/t.c": "\n" * 181}, "at most 180"),
    ("check_sizes.py", ".", {"examples/rl.c": "//\n" * 166}, "at most 165"),
    ("check_sizes.py", ".", {"src/lib/base/README.md": None}, "no README.md"),
    ("check_sizes.py", ".", {"src/lib/wire/format/c.c": "\n"}, "no README.md"),
    ("check_sizes.py", ".", {f"src/lib/base/{n}.h": "\n" for n in range(40)},
     "files, at most 40"),
    ("check_comments.py", ".",
     {"src/lib/base/b.h": "typedef enum { ON, OFF } b_state_t; /* On. */\n"},
     "no comment says what OFF is"),
    ("check_comments.py", ".",
     {"src/lib/base/b.h": "typedef enum { ON } b_state_t; /* On. */\n"
                      + "int n;\n" * 20}, "has states, and comments on 4%"),
    ("check_comments.py", ".", {"src/lib/base/c.c": "int n;\n" * 20},
     "src/lib/base: comments on"),
    ("check_comments.py", ".", {"src/lib/base/b.h": "/* One\n * and two. */\n"},
     "looks at the wrong place"),
    ("check_license.py", ".", {"src/lib/base/a.h": "int a(void);\n"},
     "its first line is not /* SPDX-License-Identifier: MIT */"),
    ("check_license.py", ".", {"test/t.py": "#!/bin/sh\n\n"},
     "its first line is not # SPDX-License-Identifier: MIT"),
    ("check_packages.py", ".", {"src/bindings/node/package.json": '{\n  "version": "0.1.1"\n'},
     "package.json is not of version 0.1.2"),
    ("check_packages.py", ".", {".ci/debian/libtnk-a0.1.install": None,
                                ".ci/debian/libtnk-a0.2.install": ""},
     "libtnk-a0.2.install is not of soname 0.1"),
    ("check_packages.py", ".", {".ci/debian/control": " libtnk0.2 (= 1)\n" + LIBRARIES},
     "libtnk0.2 is not of soname 0.1"),
    ("check_packages.py", ".", {".ci/debian/rules": DECIDED.replace("-Dround=enabled", "")},
     "no value for the feature round"),
    ("check_packages.py", ".", {".ci/debian/rules": DECIDED + "-Dgone=enabled"},
     "there is no option gone"),
    ("check_packages.py", ".", {".ci/packages/vcpkg/vcpkg.json":
                                '{\n  "version": "0.1.2"\n' + LIBRARIES.replace("dd", "")},
     "no dd, which a build on vcpkg needs"),
    ("check_packages.py", ".", {".ci/debian/control": LIBRARIES, "meson_options.txt": ""},
     "looks at the wrong place"),
    ("check_cycles.py", "src", {"src/lib/base/a.c": '#include "lib/base/b.h"\n'},
     "include cycle"),
    ("check_docs.py", "include",
     {"include/tnk/x.h": "/**\n * A. Thread:\n * any. Since: 0.1\n */\n"
                         "TNK_API int tnk_x(void);\n"},
     "run together"),
    ("check_docs.py", "include",
     {"include/tnk/x.h": "TNK_API int tnk_x(void);\n"}, "no comment above"),
    ("check_docs.py", "include",
     {"include/tnk/x.h": "/** Doc. Since: 0.1 */\nTNK_API int tnk_x(void);\n"},
     "no Thread:"),
    ("check_codes.py", ".",
     {"src/lib/base/x.c": "static int y(void) {\n  return TNK_ENOMEM;\n}\n\n"
                      "int tnk_x(void) {\n  return y();\n}\n"},
     "tnk_x() may return TNK_ENOMEM"),
    ("check_codes.py", ".", {"include/tnk/x.h": "int tnk_x(void);\n"},
     "looks at the wrong place"),
    ("check_paths.py", ".", {"src/lib/base/b.h": "/* See lib/base/gone.h. */\n"},
     "there is no src/lib/base/gone.h"),
    ("check_paths.py", ".", {"src/lib/base/README.md": "`lib/base/gone` is gone.\n"},
     "there is no src/lib/base/gone"),
    ("check_paths.py", ".", {"src/lib/base/b.h": "/* gone.c does it. */\n"},
     "there is no file gone.c"),
    ("check_paths.py", ".", {"src/lib/base/b.h": "\n", "src/README.md": "\n"},
     "looks at the wrong place"),
    ("check_errors.py", ".",
     {"include/tnk/error.h": "XX(EINVAL, -1, \"no\") XX(EBAD, -2, \"no\")\n"},
     "no test expects TNK_EBAD"),
    ("check_sized.py", ".",
     {"include/tnk/x.h": "typedef struct {\n  size_t size;\n} tnk_x_t;\n"},
     "tnk_x_t: no row"),
    ("check_sized.py", ".",
     {"include/tnk/s.h": "typedef struct {\n  int a;\n  size_t size;\n"
                         "} tnk_s_t;\n"}, "size is not its first member"),
    ("check_sized.py", ".",
     {"include/tnk/s.h": "typedef struct {\n  size_t size;\n} tnk_s_t;\n"
                         "#define TNK_S_INIT TNK_SIZED(tnk_s_t)\n"},
     "its row says YES of `reserved`"),
    ("check_sized.py", ".",
     {"include/tnk/s.h": "typedef struct {\n  size_t size;\n  int reserved;\n"
                         "} tnk_s_t;\n"}, "does not define TNK_S_INIT"),
    ("check_sized.py", ".",
     {"include/tnk/s.h": "typedef struct {\n  size_t size;\n  tnk_choice_t\n  a;\n"
                         "  int reserved;\n} tnk_s_t;\n"
                         "#define TNK_S_INIT TNK_SIZED(tnk_s_t)\n"},
     "a is not in the list of choices"),
    ("check_sized.py", ".", {"test/abi/caller.c": "\n"},
     "caller.c does not use it"),
    ("check_mutants.py", ".",
     {"test/mutants/mutants.txt": "== m1 S9.9: x\nfile: src/lib/base/a.c\n"
                                  "tests: base_b\n-  return 7;\n"},
     "S9.9 is no row"),
    ("check_mutants.py", ".", {"src/lib/base/a.c": "int a(void);\n"},
     "occurs 0 times"),
    ("check_mutants.py", ".", {"test/base/test_a.c": None},
     "no program base_a"),
    ("check_mutants.py", ".",
     {"test/mutants/mutants.txt": "== m1 x\nfile: src/lib/base/a.c\n"
                                  "tests: base_a\n-  return 1;\n+  return 2;\n"
                                  "file: src/lib/base/a.h\n-int b(void);\n"},
     "occurs 0 times in src/lib/base/a.h"),
    ("check_mutants.py", ".",
     {"test/mutants/mutants.txt": "== m1 x\nfile: src/lib/base/a.c\n"
                                  "tests: base_a:no_such_case\n-  return 1;\n"},
     "no program base_a:no_such_case"),
    ("check_mutants.py", ".", {"test/mutants/mutants.txt": "# None.\n"},
     "looks at the wrong place"),
    ("check_requirements.py", ".",
     {"test/t.c": "TEST_LIMIT(A2_S1_5_tea, 9) {\n}\n"}, "cites S1_5"),
    ("check_requirements.py", ".", {"test/t.c": "TEST(P1_3_tea) {\n}\n"},
     "cites P1_3"),
    ("check_requirements.py", ".",
     {"test/t.c": "TEST(tea) {\n}\n", "test/t.py": None}, "no test cites a row"),
    ("check_requirements.py", ".", {"test/t.py": "check(2, \"S_9_tea\")\n"},
     "cites S_9"),
    ("check_requirements.py", ".", {"test/t.py": None},
     "11.10 of the protocol, cells: no test is called P11_10_cells"),
    ("check_requirements.py", ".",
     {"test/REQUIREMENTS.md": SHOWN.replace("| 9.13 | `?`", "| 9.13 | `#`")},
     "9.13 of the protocol, `?`: no test is named"),
    ("check_requirements.py", ".",
     {"test/REQUIREMENTS.md": SHOWN.replace("| 9.13 | `?`", "| 9.13 | `#`")},
     "9.13 has no row `#`"),
    ("check_requirements.py", ".",
     {"test/REQUIREMENTS.md": SHOWN.replace("`P9_13_marks`", "`P1_2_tea`")},
     "cites another section"),
    ("check_requirements.py", ".",
     {"test/REQUIREMENTS.md": "| S1.4 | Tea. |\n| S1.4 | Tea. |\n"},
     "2 rows are called S1.4"),
    ("check_protocol.py", ".",
     {"src/lib/base/b.h": "/* Protocol: letters. */\n"}, "no document \"letters\""),
    ("check_protocol.py", ".",
     {"src/lib/base/b.h": "/* Protocol: calls, tea\n * and cake. */\n"},
     "no heading or row \"tea and cake\""),
    ("check_protocol.py", ".",
     {"src/lib/base/b.h": "/* Protocol: calls, making tea */\n"}, "no full stop"),
    ("check_protocol.py", ".",
     {"src/lib/base/a.c": "/* See calls.md 1.2. Protocol: calls. */\n"},
     "write \"Protocol:"),
    ("check_protocol.py", ".", {"src/lib/base/b.h": "/* None. */\n"},
     "looks at the wrong place"),
    ("check_diagrams.py", ".",
     {"src/lib/base/b.h": "/*\n *   ON --a word--> OFF\n * OFF --a word--> ON\n */\n"},
     "damaged at: OFF"),
    ("check_diagrams.py", ".", {"src/lib/base/b.h": "/*\n * | a | b\n * | c |\n */\n"},
     "damaged at: | a | b"),
    ("check_layers.py", ".", {"src/lib/base/a.c": '#include "lib/io/loop/loop.h"\n'},
     "lib/base may not include"),
    ("check_layers.py", ".", {"src/lib/base/a.c": '#include "a.h"\n'},
     "lib/base may not include"),
    ("check_layers.py", ".", {"src/lib/a/a.c": "\n"}, "lib/a has no row"),
    ("check_layers.py", ".", {LAYERS: "lib/base:\nlib/a: lib/base\n"}, "there is no folder lib/a"),
    ("check_layers.py", ".", {LAYERS: "lib/base: lib/a\nlib/a: lib/base\n"},
     "a cycle of folders: lib/a lib/base lib/a"),
    ("check_layers.py", ".", {LAYERS: "lib/base/a: lib/b\nlib/b: lib/base/c\n"},
     "a cycle of features: lib/b lib/base lib/b"),
    ("check_layers.py", ".", {LAYERS: "lib/base:\nlib/base:\n"}, "has two rows"),
    ("check_layers.py", ".", {LAYERS: "lib/base:\nlib/a: lib/base\n"},
     "the diagram differs"),
    ("check_layers.py", ".", {"src/lib/base/README.md": "Base.\n"},
     "its last line differs"),
    ("check_layers.py", ".", {"src/README.md": "# Map\n"},
     "no place for the diagram"),
    ("check_calls.py", ".", {"src/lib/base/b.c": None}, "none but tests call a"),
    ("check_calls.py", ".",
     {"src/lib/base/a.c": A_CALLS_C, "src/lib/policy/c.c": C},
     "circle of calls: lib/base lib/policy"),
    ("check_calls.py", ".",
     {"src/lib/base/a.c": A_CALLS_C, "src/lib/policy/c.c": C},
     "lib/base -> lib/policy: c"),
    ("check_calls.py", ".", {"src/lib/base/b.h": "#define BASE_B 1\n"},
     "nothing uses BASE_B"),
    ("check_calls.py", ".",
     {"src/lib/base/b.h": "struct b {\n  int *member[2];\n};\n"},
     "nothing uses member"),
    ("check_calls.py", ".",
     {"src/lib/base/c.c": "int c(int n) {\n  return n ? c(n - 1) : 0;\n}\n"},
     "lib/base/c: c should be static"),
    ("check_calls.py", ".", {CALLS: "unused a -- a reason\n"},
     "a is used or gone"),
    ("check_calls.py", ".",
     {"src/lib/base/a.c": A_CALLS_C, "src/lib/policy/c.c": "int c(void) { return 1; }\n"},
     "lib/base/a may not call c of lib/policy/c"),
    ("check_calls.py", ".", {CALLS: "layer lib/base/a lib/policy/c -- to go\n"},
     "lib/base/a does not call lib/policy/c"),
    ("check_calls.py", ".", {CALLS: "layer lib/base/a lib/policy/c -- a reason\n"},
     "no reason is good enough"),
]


def build(top):
    """Compiles src/ as a build does, and notes it where builds note it."""
    files = list(top.glob("src/**/*.c"))
    subprocess.run([*COMPILER, "-I", top / "src", "-c", *files], cwd=top,
                   check=True)
    notes = [{"directory": str(top), "file": str(path),
              "output": path.stem + ".o"} for path in files]
    (top / "compile_commands.json").write_text(json.dumps(notes))


def run(check, folder, changes):
    with tempfile.TemporaryDirectory() as top:
        for name, text in {**GOOD, **changes}.items():
            path = pathlib.Path(top, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if name in GOOD and name not in changes:
                text = MARKS.get(path.suffix, "") + text
            if text is not None:
                path.write_text(text)
        command = [sys.executable, HERE / check, pathlib.Path(top, folder)]
        if check == "check_calls.py":
            build(pathlib.Path(top))
            command.append(top)
        return subprocess.run(command, capture_output=True, text=True)


def main():
    bad = 0
    for check, folder in sorted({fault[:2] for fault in FAULTS}):
        good = run(check, folder, {})
        if good.returncode != 0:
            print(f"{check} rejects a good tree:\n{good.stdout}{good.stderr}")
            bad = 1
    for check, folder, changes, words in FAULTS:
        found = run(check, folder, changes)
        if found.returncode != 1 or words not in found.stdout + found.stderr:
            print(f"{check} misses {words!r}:\n{found.stdout}{found.stderr}")
            bad = 1
    return bad


sys.exit(main())
