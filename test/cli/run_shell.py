#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What comes from the tables of commands: help, man pages, completion.

usage: run_shell.py TNK_COMMAND

Output is TAP, see test/support/tap.py. Shells that are not there are left out.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from console import check, plan, tnk
from tap import skip


def commands_below(*words):
    """All commands, as lists of words, from the help."""
    text = tnk(*words, "--help").stdout
    found = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)
    if not found:
        yield list(words)
        return
    if words:
        yield list(words)
    for name in re.findall(r"^  tnk ([a-z][a-z -]*?)(?:  |$)", found[1], re.M):
        yield from commands_below(*name.split())


def options_of(words):
    return re.findall(r"^  (?:-\w, )?(--[\w-]+)", tnk(*words, "--help").stdout, re.M)


def S_1_help_of_all_commands(commands):
    check(["run", "list"] in commands and ["checkpoint", "delete"] in commands and
          ["version"] in commands, "the help names all commands", commands)
    for words in commands:
        got = tnk(*words, "--help")
        check(got.returncode == 0 and not got.stderr and
              got.stdout.startswith("usage: tnk " + " ".join(words)) and
              "Exit status:" in got.stdout and
              all(len(line) < 81 and line == line.rstrip() for line in got.stdout.splitlines()),
              f"tnk {' '.join(words)} --help", got)
        check(tnk("help", *words).stdout == got.stdout and tnk(*words, "-h").stdout == got.stdout,
              "tnk help and -h say the same")
        options = options_of(words)
        check(len(set(options)) == len(options) and "--help" in options, "each option once", options)
        got = tnk(*words, "--nonsense")
        check(got.returncode == 2 and "--nonsense" in got.stderr and not got.stdout and
              f"Try tnk {' '.join(words)} --help." in got.stderr, "others are refused", got)
    for wrong, meant in ((["lcoal"], "local"), (["checkpoint", "lsit"], "list"),
                         (["run", "list", "--limt", "1"], "--limit"),
                         (["run", "list", "--jsn"], "--json")):
        got = tnk(*wrong)
        check(f'did you mean "{meant}"?' in got.stderr, f"{meant} is meant", got)
    # Values in every form, options in every place.
    for words in (["--json", "--base-url", "http://127.0.0.1:1", "--retries=0", "run", "info", "x"],
                  ["run", "info", "x", "-f", "json", "--base-url=http://127.0.0.1:1", "--retries", "0"],
                  ["run", "info", "-qfjson", "--retries=0", "--base-url=http://127.0.0.1:1", "--", "x"]):
        got = tnk(*words, env={"TINKER_API_KEY": "tml-x"})
        check(got.returncode == 5 and '"exit_status":5' in got.stdout, " ".join(words), got)


def pages(commands):
    with tempfile.TemporaryDirectory() as where:
        got = tnk("help", "--man-pages", where)
        check(got.returncode == 0, "man pages are written", got)
        names = {"tnk-" + words[0] for words in commands} | {"tnk"}
        check({path.stem for path in pathlib.Path(where).iterdir()} == names,
              "one for each command")
        for words in commands:
            page = pathlib.Path(where, f"tnk-{words[0]}.1").read_text().replace("\\-", "-")
            check(" ".join(words) in page and all(o in page for o in options_of(words)),
                  f"it has {' '.join(words)} and its options", page)
        for path in pathlib.Path(where).iterdir():
            text = path.read_text()
            check(text.startswith('.\\" Generated') and ".SH NAME\n" in text and
                  re.search(r"^tnk\S* \\- \S", text, re.M), f"the form of {path.name}", text)
            if shutil.which("groff"):
                said = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", str(path)],
                                      capture_output=True, text=True)
                check(said.returncode == 0 and not said.stderr, "groff has nothing to say", said)
    got = tnk("help", "--man-pages", "/nowhere/at/all")
    check(got.returncode == 6 and "/nowhere" in got.stderr, "no such folder", got)


def bash(script, *line):
    """What bash offers at the end of a line."""
    words = " ".join(f"'{word}'" for word in line)
    got = subprocess.run(["bash", "--norc", "-c", f"{script}\nCOMP_WORDS=({words})\n"
                          f"COMP_CWORD={len(line) - 1}\n_tnk\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""],
                         capture_output=True, text=True)
    check(got.returncode == 0 and not got.stderr, f"bash completes {line}", got)
    return set(got.stdout.split())


def fish(script, lines):
    """What fish offers at the end of each line."""
    with tempfile.TemporaryDirectory() as home:
        pathlib.Path(home, "tnk.fish").write_text(script)
        asked = "\n".join(f"complete -C '{' '.join(line)}'; echo ==" for line in lines)
        got = subprocess.run(["fish", "--no-config", "-c", f"source {home}/tnk.fish\n{asked}"],
                             capture_output=True, text=True, env={**os.environ, "HOME": home})
    check(got.returncode == 0 and not got.stderr, "fish loads it", got)
    return [{entry.split("\t")[0] for entry in block.splitlines()}
            for block in got.stdout.split("==\n")[:-1]]


# What a completion says to the shell is printed in place of being shown.
ZSH = r'''
fpath=({where} $fpath)
autoload -Uz compinit && compinit -u -D
[[ ${{_comps[tnk]}} = _tnk ]] || print -r -- "not found" >&2
_describe() {{ print -rl -- ${{${{(P)4}}%%:*}} }}
compadd() {{ shift; print -rl -- "$@" }}
_files() {{ print -r -- FILES }}
_message() {{ }}
{asked}
'''


def zsh(script, lines):
    """What zsh is told about each line, whatever its last word begins with."""
    with tempfile.TemporaryDirectory() as where:
        pathlib.Path(where, "_tnk").write_text(script)
        asked = "\n".join(f"words=({' '.join(line)} '') CURRENT={len(line) + 1}; _tnk; print -r -- '=='"
                          for line in lines)
        got = subprocess.run(["zsh", "-f", "-c", ZSH.format(where=where, asked=asked)],
                             capture_output=True, text=True)
    check(got.returncode == 0 and not got.stderr, "zsh loads it, and finds it by its name", got)
    return [set(block.split()) for block in got.stdout.split("==\n")[:-1]]


def in_fish(commands):
    if not shutil.which("fish"):
        skip("completion in fish", "fish is not installed")
        return
    lines = [["tnk", *words, "--"] for words in commands]
    offered = fish(tnk("completion", "fish").stdout, [
        *lines, ["tnk", ""], ["tnk", "checkpoint", "se"], ["tnk", "--json", "run", "li"],
        ["tnk", "run", "list", "--access-scope", "a"], ["tnk", "run", "list", "--limit", ""]])
    for words, got in zip(commands, offered):
        check(got == set(options_of(words)), f"fish: options of {words}", got)
    check(offered[len(lines)] == {words[0] for words in commands}, "fish: all commands", offered)
    check(offered[len(lines) + 1:] == [{"set-ttl"}, {"list"}, {"accessible"}, set()],
          "fish: one by its beginning, behind an option, a value, or none", offered)


def in_zsh(commands):
    if not shutil.which("zsh"):
        skip("completion in zsh", "zsh is not installed")
        return
    lines = [["tnk", *words] for words in commands]
    offered = zsh(tnk("completion", "zsh").stdout, [
        *lines, ["tnk"], ["tnk", "--json", "run"], ["tnk", "run", "list", "--access-scope"],
        ["tnk", "run", "list", "--limit"], ["tnk", "lint"]])
    for words, got in zip(commands, offered):
        check({word for word in got if word.startswith("--")} == set(options_of(words)),
              f"zsh: options of {words}", got)
    top, below, value, none, files = offered[len(lines):]
    check({words[0] for words in commands} <= top and {"list", "info"} <= below,
          "zsh: all commands", (top, below))
    check(value == {"owned", "accessible"} and none == set() and "FILES" in files,
          "zsh: a value, none, a file", (value, none, files))


def completion(commands):
    for shell, flag in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
        got = tnk("completion", shell)
        check(got.returncode == 0 and all(" ".join(words) in got.stdout for words in commands),
              f"{shell}: all commands are there", got)
        if shutil.which(shell):
            said = subprocess.run([shell, flag], input=got.stdout, capture_output=True, text=True)
            check(said.returncode == 0 and not said.stderr, f"{shell} reads it", said)
    if not shutil.which("bash"):
        return
    script = tnk("completion", "bash").stdout
    top = {words[0] for words in commands}
    check(top <= bash(script, "tnk", "") and "--json" in bash(script, "tnk", "--"), "all of them")
    check(bash(script, "tnk", "checkpoint", "se") == {"set-ttl"}, "one by its beginning")
    for words in commands:
        got = bash(script, "tnk", *words, "--")
        check(got == set(options_of(words)), f"options of {words}", got)
    check(bash(script, "tnk", "run", "list", "--access-scope", "a") == {"accessible"}, "a value")
    check(bash(script, "tnk", "run", "list", "--limit", "") == set(), "or none")
    check(bash(script, "tnk", "--json", "run", "li") == {"list"}, "behind an option")
    with tempfile.TemporaryDirectory() as where:
        pathlib.Path(where, "data.jsonl").write_text("")
        check(bash(script, "tnk", "lint", where + "/da") == {where + "/data.jsonl"}, "a file")
    for wrong in ([], ["csh"], ["bash", "zsh"]):
        got = tnk("completion", *wrong)
        check(got.returncode == 2 and not got.stdout, f"refused: {wrong}", got)


ALL = list(commands_below())
S_1_help_of_all_commands(ALL)
pages(ALL)
completion(ALL)
in_fish(ALL)
in_zsh(ALL)
plan()
