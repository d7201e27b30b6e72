#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the command as a person would.

usage: run_cli.py TNK_COMMAND

Output is TAP, see test/support/tap.py.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tap import check, plan

TNK = sys.argv[1]
PEM = str(pathlib.Path(__file__).resolve().parent / "localhost.pem")


def run(*args):
    return subprocess.run([TNK, *args], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)


def start(*args, **env):
    server = subprocess.Popen([TNK, "local", *args], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env={**os.environ, "no_proxy": "*", **env})
    line = server.stdout.readline()
    found = re.fullmatch(r"listening on (https?://\S+)\n", line)
    check(found, f"tnk local {' '.join(args)} says where it listens", line)
    return server, found[1]


def end(server, what):
    server.stdin.close()
    check(server.wait(60) == 0, what)
    server.stdout.close()
    server.stderr.close()


def call(url, path, body=None, **headers):
    request = urllib.request.Request(
        url + "/api/v1/" + path, headers=headers,
        data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as err:
        return err.code, json.loads(err.read())


def command_lines():
    got = run()
    check(got.returncode == 2 and "usage: tnk" in got.stderr, "no command", got)
    got = run("nonsense")
    check(got.returncode == 2 and '"nonsense"' in got.stderr, "a wrong one", got)
    for word in ("--help", "-h", "help"):
        got = run(word)
        check(got.returncode == 0 and "tnk local" in got.stdout, word, got)
    for words in (["version", "--json"], ["--json", "version"],
                  ["-fjson", "version"], ["version", "--format=json"]):
        got = run(*words)
        check(json.loads(got.stdout)["version"] in run("--version").stdout,
              " ".join(words), got)
    for word in (["help", "local"], ["help", "lint"], ["help", "version"]):
        got = run(*word)
        check(got.returncode == 0 and f"usage: tnk {word[1]}" in got.stdout,
              " ".join(word), got)
    got = run("locla")
    check(got.returncode == 2 and 'did you mean "local"?' in got.stderr,
          "what a command may have been", got)
    got = run("version", "x")
    check(got.returncode == 2 and '"x"' in got.stderr and not got.stdout,
          "version takes no argument", got)
    got = run("version", "--help")
    check(got.returncode == 0 and "usage: tnk version" in got.stdout,
          "version --help", got)
    got = run("--version")
    check(re.fullmatch(r"tnk \d+\.\d+\.\d+ \((HTTP/2 with nghttp2 [\d.]+|without HTTP/2)\)\n", got.stdout), "--version", got)
    got = run("local", "--help")
    check(got.returncode == 0 and "TINKER_BASE_URL" in got.stdout,
          "local --help", got)
    switches = re.findall(r"^  (--\S+)", got.stdout, re.M)
    check(len(switches) >= 20, "the help lists the switches", got)
    check(all(len(line) <= 80 for line in got.stdout.splitlines()),
          "the help fits 80 columns", got)
    check("away for more than 5 s" in " ".join(got.stdout.split()),
          "the help says how long results are kept", got)
    for args, words in ((["--nonsense"], "--nonsense"),
                        (["extra"], 'takes no argument, but "extra"'),
                        (["--prot", "1"], 'did you mean "--port"?'),
                        (["--sequnce=strict"], 'did you mean "--sequence"?'),
                        (["--threads", "0"], "not a whole number from 1 to 8"),
                        (["--threads", "9"], "not a whole number from 1 to 8"),
                        (["--members", "odd"], "not one of any or strict"),
                        (["--stub", "--data", "x"], "--stub does not support --data"),
                        (["--stub-cut-ms", "1"], "--stub-cut-ms needs --stub"),
                        (["--stub", "--vocab", "300"], "--stub does not support --vocab"),
                        (["--vocab", "257"], "not a whole number from 258"),
                        (["--stub-answers", "x"], "--stub-answers needs --stub"),
                        (["--port"], "needs a value: --port N"),
                        (["--port", "x"], "not a whole number"),
                        (["--port", "-1"], "not a whole number"),
                        (["--port", "65536"], "not a whole number from 0 to 65535"),
                        (["--port="], "not a whole number"),
                        (["--sequence", "odd"], "not one of buffered, lenient or strict"),
                        (["--flag", "=1"], "must be NAME=VALUE"),
                        (["--api-key", ""], "is empty"),
                        (["--json-results=1"], "takes no value"),
                        (["--faults", "503=1%,cut_bdy@12:100"],
                         'in the fault "cut_bdy@12:100"'),
                        (["--fault-log", ""], "is empty"),
                        (["--stub-cut-ms", "x"], "not a whole number"),
                        (["--tls-cert", "x"], "--tls-cert needs --tls-key"),
                        (["--tls-key", "x"], "--tls-key needs --tls-cert"),
                        (["--tls-cert", ""], "is empty"),
                        (["--full", "odd"], "not one of wait, close, reset or 503"),
                        (["--max-connections", "0"], "not a whole number from 1"),
                        (["--max-streams", "0"], "--max-streams"),
                        (["--flag", "a=1"] * 65, "at most 62 times")):
        got = run("local", *args)
        check(got.returncode == 2 and words in got.stderr and not got.stdout
              and "--help" in got.stderr,
              f"local {' '.join(args)[:40]} is refused", got)


def standard_files():
    """Output that goes nowhere is told, and missing files are no others."""
    for args in (["--version"], ["--help"], ["local", "--help"], ["local"]):
        with open("/dev/full", "w") as full:
            got = subprocess.run([TNK, *args], stdin=subprocess.DEVNULL,
                                 stdout=full, stderr=subprocess.PIPE, text=True,
                                 timeout=60)
        check(got.returncode == 6 and "cannot write the output" in got.stderr,
              f"{' '.join(args)} on a full disk", got)
    got = subprocess.run(["sh", "-c", 'exec "$0" local --exit-with-stdin '
                          "0<&- 1>&- 2>&-", TNK], timeout=60)
    check(got.returncode == 0, "none of the standard files", got)


def faults():
    """On both servers: by the switch, by the endpoint, and the log of them."""
    with tempfile.TemporaryDirectory() as where:
        log = pathlib.Path(where, "faults.jsonl")
        for stub in ([], ["--stub"]):
            server, url = start("--exit-with-stdin", "--faults",
                                "503/healthz@2,429/telemetry:ms=5",
                                "--fault-log", str(log), "--fault-control",
                                *stub)
            got = [call(url, "healthz")[0] for _ in range(3)]
            check(got == [200, 503, 200], "the second one fails", got)
            check(call(url, "telemetry", {})[0] == 429, "and the telemetry")
            with urllib.request.urlopen(url + "/tnk/faults") as answer:
                got = json.loads(answer.read())
            check(got["counts"] == {"503": 1, "429": 1}, "both are listed", got)
            request = urllib.request.Request(url + "/tnk/faults", b"",
                                             method="PUT")
            with urllib.request.urlopen(request) as answer:
                check(json.loads(answer.read())["faults"] == "", "no more")
            check(call(url, "telemetry", {})[0] == 200, "and none comes")
            end(server, "the end after faults")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        check([line["fault"] for line in lines] == ["503", "429"] * 2,
              "the file has them", lines)
        got = run("local", "--fault-control", "--fault-log", where,
                  "--exit-with-stdin")
        check(got.returncode == 6 and "cannot write" in got.stderr,
              "a log that cannot be written", got)


def cannot_serve():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        got = run("local", "--port", str(taken.getsockname()[1]))
        check(got.returncode == 1 and "address already in use" in got.stderr,
              "a port that is taken", got)
        got = run("local", "--stub", "--port", str(taken.getsockname()[1]))
        check(got.returncode == 1 and "address already in use" in got.stderr,
              "with canned answers too", got)
    got = run("local", "--host", "0.0.0.0")
    check(got.returncode == 1 and "needs an API key" in got.stderr,
          "an open address without a key", got)
    got = run("local", "--host", "example.org")
    check(got.returncode == 1 and "must be a numeric address" in got.stderr,
          "a host by name", got)
    got = run("local", "--stub", "--host", "example.org")
    check(got.returncode == 1 and "invalid argument" in got.stderr,
          "a stub's by name", got)
    got = run("local", "--host", "localhost", "--exit-with-stdin")
    check(got.returncode == 0 and "listening on http://127.0.0.1:" in got.stdout,
          "but for the one that needs no look-up", got)
    got = run("local", "--data", "/proc/nothing/here")
    check(got.returncode == 1 and "the directory for checkpoints" in got.stderr,
          "a directory that cannot be", got)
    with tempfile.TemporaryDirectory() as tmp:
        file = pathlib.Path(tmp, "file")
        file.write_text("")
        got = run("local", "--data", str(file), "--exit-with-stdin")
        check(got.returncode == 1 and
              f"checkpoints {file}: not a directory" in got.stderr,
              "a file in place of the directory", got)
        data = pathlib.Path(tmp, "data")
        server, _ = start("--exit-with-stdin", "--data", str(data))
        got = run("local", "--data", str(data), "--exit-with-stdin")
        check(got.returncode == 1 and
              f"checkpoints {data}: another server is using it" in got.stderr,
              "a directory that another server uses", got)
        end(server, "which is not disturbed")
        got = run("local", "--data", str(data), "--exit-with-stdin")
        check(got.returncode == 0, "and leaves it to the next one", got)
    got = run("local", "--port", "0", "--exit-with-stdin")
    check(got.returncode == 0 and "listening on" in got.stdout,
          "an input that is at its end already", got)


def few_files():
    """Many polls at once with hardly a descriptor."""
    server = subprocess.Popen(
        ["sh", "-c", 'ulimit -n 48; exec "$0" local --exit-with-stdin', TNK],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    url = server.stdout.readline().split()[-1]
    session = call(url, "create_session", {"sdk_version": "1"})[1]["session_id"]
    sampler = call(url, "create_sampling_session",
                   {"session_id": session, "base_model": "tnk/byte-lm"})[1]
    ids = [call(url, "asample", {
        "sampling_session_id": sampler["sampling_session_id"], "seq_id": i,
        "prompt": {"chunks": [{"type": "encoded_text", "tokens": [i % 256]}]},
        "sampling_params": {"max_tokens": 2}})[1]["request_id"]
        for i in range(150)]

    def result(id):
        while True:
            status, body = call(url, "retrieve_future", {"request_id": id})
            if status != 200 or body.get("type") != "try_again":
                return status

    with concurrent.futures.ThreadPoolExecutor(150) as pool:
        got = list(pool.map(result, ids))
    check(got == [200] * 150, "150 polls share 24 connections", got)
    end(server, "and it ends")


def model_dir():
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp).resolve() / "byte-lm"
        server, url = start("--exit-with-stdin", "--model-dir", str(folder))
        models = call(url, "get_server_capabilities")[1]["supported_models"]
        check([m["model_name"] for m in models] == [str(folder)],
              "the model has the name of its directory", models)
        session = call(url, "create_session", {"sdk_version": "1"})[1]
        made = call(url, "create_model", {
            "session_id": session["session_id"], "base_model": str(folder),
            "lora_config": {"rank": 2}})[1]["model_id"]
        info = call(url, "get_info", {"model_id": made})[1]["model_data"]
        check(info["tokenizer_id"] == info["model_name"] == str(folder),
              "and so has its tokenizer", info)
        end(server, "it ends")
        vocab = json.loads((folder / "tokenizer.json").read_text())
        check(sorted(vocab["model"]["vocab"].values()) == list(range(256)) and
              [t["id"] for t in vocab["added_tokens"]] == [256, 257],
              "it has the ids of the model")
        text = "tab\t, n\u00e4chste, \u20ac and <|end|>\n"
        got = run("tokenize", "--tokenizer", str(folder), "--text", text)
        if "no command" not in got.stderr:  # Left out of this build.
            want = list(text.encode().replace(b"<|end|>", b"\0"))
            want = [257 if c == 0 else c for c in want]
            ids = [int(i) for i in got.stdout.split()]
            check(ids == want, "a text is its bytes", got)
            back = subprocess.run([TNK, "detokenize", "--tokenizer",
                                   str(folder)], input=got.stdout,
                                  capture_output=True, text=True, timeout=60)
            check(back.stdout.rstrip("\n") == text.rstrip("\n"), "and back", back)
        got = run("local", "--model-dir", "/proc/nothing", "--exit-with-stdin")
        check(got.returncode == 1 and "for the model /proc/nothing" in got.stderr,
              "a directory that cannot be made", got)


def model_name():
    server, url = start("--exit-with-stdin", "--model", "Some/Model-8B")
    models = call(url, "get_server_capabilities")[1]["supported_models"]
    check([m["model_name"] for m in models] == ["Some/Model-8B"],
          "the model has the name that was given", models)
    session = call(url, "create_session", {"sdk_version": "1"})[1]["session_id"]
    for name, ok in (("Some/Model-8B", True), ("tnk/byte-lm", True), ("Some/Other", False)):
        made = call(url, "create_model", {"session_id": session, "base_model": name,
                                          "lora_config": {"rank": 2}})[1]
        got = call(url, "retrieve_future", {"request_id": made["request_id"]})[1]
        check(("error" not in got) == ok, f"a model made from {name}", got)
    end(server, "it ends")
    for name in ("", "x" * 513):
        got = run("local", "--model", name, "--exit-with-stdin")
        check(got.returncode in (1, 2), "a name out of range is refused", got)


def tokenizer():
    """A vocabulary that is given, and found again by the model's name."""
    with tempfile.TemporaryDirectory() as tmp:
        own = pathlib.Path(tmp).resolve() / "own"
        server, _ = start("--exit-with-stdin", "--model-dir", str(own))
        end(server, "the model's own tokenizer is written")
        wide = own.parent / "wide"
        wide.mkdir()
        file = json.loads((own / "tokenizer.json").read_text())
        file["added_tokens"] += [
            {"id": i, "content": f"<w{i}>", "single_word": False,
             "lstrip": False, "rstrip": False, "normalized": False,
             "special": True} for i in range(258, 1000)]
        (wide / "tokenizer.json").write_text(json.dumps(file))
        got = run("local", "--tokenizer", str(wide), "--vocab", "1000",
                  "--exit-with-stdin")
        if "unknown option" in got.stderr or "no option" in got.stderr:
            return  # Left out of this build.
        check(got.returncode == 2 and "--vocab" in got.stderr,
              "it says how many ids there are", got)
        got = run("local", "--tokenizer", str(own.parent / "none" / "x"),
                  "--exit-with-stdin")
        check(got.returncode == 6 and "none" in got.stderr, "one that is not there", got)
        for path in (wide, wide / "tokenizer.json"):
            server, url = start("--exit-with-stdin", "--tokenizer", str(path))
            models = call(url, "get_server_capabilities")[1]["supported_models"]
            check([m["model_name"] for m in models] == [str(wide)],
                  "the model is named after its directory", models)
            got = subprocess.run([TNK, "sample", "--json", "--model", str(wide), "--max-tokens",
                                  "64", "--seed", "1", "--base-url", url, "<w999> the "],
                                 capture_output=True, text=True, timeout=60,
                                 env={**os.environ, "TINKER_API_KEY": "tml-x"})
            check(got.returncode == 0, "clients find its tokenizer by that", got)
            ids = json.loads(got.stdout)["samples"][0]["tokens"]
            check(len(ids) > 0 and max(ids) >= 258 and max(ids) < 1000,
                  "and its ids are the model's", ids)
            end(server, "it ends")


def rude(url):
    """Ask for much, and go without waiting for it."""
    host, port = url.removeprefix("http://").split(":")
    for _ in range(20):
        with socket.create_connection((host, int(port))) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            struct.pack("ii", 1, 0))
            gone.sendall(b"GET /api/v1/healthz HTTP/1.1\r\n\r\n" * 2000)


def serving():
    with tempfile.TemporaryDirectory() as tmp:
        server, url = start("--port", "0", "--exit-with-stdin", TMPDIR=tmp)
        check(call(url, "healthz") == (200, {"status": "ok"}), "it answers")
        check(len(os.listdir(tmp)) == 1, "checkpoints have a place")
        rude(url)
        check(call(url, "healthz") == (200, {"status": "ok"}),
              "clients that hang up in the middle of answers end nothing")
        end(server, "it ends with its input")
        check(not os.listdir(tmp), "and leaves nothing behind", os.listdir(tmp))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            server, url = start("--port=0", TMPDIR=tmp)
            server.send_signal(number)
            check(server.wait(60) == 0, f"{number.name} ends it")
            check(not os.listdir(tmp), "and it cleans up", os.listdir(tmp))
            for stream in (server.stdin, server.stdout, server.stderr):
                stream.close()
        data = pathlib.Path(tmp, "a", "b")
        server, url = start("--exit-with-stdin", "--data", str(data))
        end(server, "it ends")
        check(data.is_dir(), "a directory that was named stays")


def switches():
    server, url = start("--exit-with-stdin", "--api-key", "tml-k", "--verbose",
                        "--max-chunk", "7", "--flag", "proto_compress_fwdbwd",
                        "--flag", "sample_cancel_enabled=false",
                        "--flag", "credential_default_source=api_key")
    check(call(url, "client/config", {})[0] == 401, "the key is asked for")
    check(call(url, "client/config", {}, **{"X-API-Key": "tml-x"})[0] == 403,
          "and no other one will do")
    key = {"X-API-Key": "tml-k"}
    status, config = call(url, "client/config", {}, **key)
    check(config["fwdbwd_max_chunk_len"] == 7 and
          config["proto_compress_fwdbwd"] is True and
          config["credential_default_source"] == "api_key",
          "flags are told to clients", config)
    status, config = call(url, "client/dynamic_config", {}, **key)
    check(config == {"sample_cancel_enabled": False}, "dynamic ones too", config)
    call(url, "%1b[2J", {}, **key)
    server.stdin.close()
    log = server.stderr.read()
    check("POST /api/v1/ [2J seq=-1 404" in log, "nor a peer's escapes", log)
    check("POST /api/v1/client/config seq=-1 401" in log and "tml-" not in log,
          "--verbose tells requests, but no keys", log)
    check(server.wait(60) == 0, "it ends")
    server.stdout.close()
    server.stderr.close()
    server, url = start("--exit-with-stdin", "--api-key", "tml-k", "--tokens", "60")
    status, answer = call(url, "auth/token", {}, **key)
    check(status == 200 and call(url, "client/dynamic_config", {}, **key)[0] == 401,
          "with --tokens the key is good for a token")
    token = {"X-API-Key": answer["jwt"]}
    check(call(url, "client/dynamic_config", {}, **token)[0] == 200, "which opens")
    end(server, "it ends")
    server, url = start("--exit-with-stdin", "--sequence", "lenient")
    check(call(url, "client/config", {})[1] == {"pjwt_auth_enabled": False},
          "--sequence lenient resembles its server")
    end(server, "it ends")


GOOD = {"model_input": {"chunks": [{"type": "encoded_text",
                                    "tokens": [1, 2]}]},
        "loss_fn_inputs": {"target_tokens": {"data": [2, 3],
                                             "dtype": "int64"}}}


def top():
    dump = {"process": {"pid": 7, "time_s": 1, "clock_ms": 5},
            "host": "here", "port": 80, "session": {"state": "ready", "id": "s-1"},
            "counters": {"pending": 3, "requests": 12, "bytes_sent": 2048},
            "http": {"connections": 2, "lanes": {"samples": {"in_flight": 4, "max": 64,
                                                             "queued": 9}}},
            "trainings": [{"model_id": "0123456789abcdef" * 2 + ":train:0", "pending": 2,
                           "operations": ["optim_step: waits\u001b[2J"]}],
            "samplings": [{"id": "a-1", "pending": 0, "operations": []}],
            "requests": ["healthz: waits", 5]}
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "dump")
        path.write_text(json.dumps(dump))
        got = run("top", str(path))
        lines = got.stdout.splitlines()
        check(got.returncode == 0 and
              lines[0].startswith("here:80  process 7  session ready s-1  (written "),
              "top says whose dump it is, and that it is old", got)
        check(lines[1].startswith("pending 3  requests 12  retries 0"),
              "and what was counted", got)
        check(any(line.split() == ["samples", "4", "64", "9"] for line in lines),
              "what is under way", got)
        clients = lines[next(i for i, line in enumerate(lines) if line.startswith("CLIENT")):]
        check(clients[1].split()[1:3] == ["2", "optim_step:"] and "\x1b" not in got.stdout,
              "what clients wait for, without acting on it", got)
        check(clients[1].index("2  optim") == clients[0].index("G  THE") ==
              clients[2].index("0  "), "in columns, however long an id is", got)
        got = run("top", "--json", str(path))
        check(got.returncode == 0 and json.loads(got.stdout) == dump, "the file in JSON", got)
        path.write_text("{}")
        got = run("top", "--once", str(path))
        check(got.returncode == 6 and "not a service's dump" in got.stderr,
              "another file is refused", got)
    got = run("top", "/nowhere/at/all")
    check(got.returncode == 6 and not got.stdout, "so is one that is not there", got)


def lint():
    short = json.loads(json.dumps(GOOD))
    short["loss_fn_inputs"]["target_tokens"]["data"] = [2]
    huge = json.loads(json.dumps(GOOD))
    huge["loss_fn_inputs"]["weights"] = {"data": [1, 1e300],
                                         "dtype": "float32"}
    lines = [json.dumps(GOOD), "", "{", json.dumps(short), json.dumps(huge),
             "{\"model_input\": {\"chunks\": [{\"tokens\": [0.5]}]}}"]
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "data.jsonl")
        path.write_text("\n".join(lines) + "\n")
        got = run("lint", "--loss", "cross_entropy", str(path))
        said = got.stdout.splitlines()
        check(got.returncode == 1 and not got.stderr, "lint finds faults", got)
        check(said[0] == f"{path}:3: it is not JSON", "of the form", said)
        check(said[1] == f"{path}:4: \"target_tokens\" has 1 values, "
              "expected 2", "of the data", said)
        check(said[2].startswith(f"{path}:5: \"weights\""), "of values", said)
        check(said[3] == f"{path}:6: model_input.chunks[0].tokens[0] is not "
              "an integer", "with the place", said)
        check(said[4:] == ["5 examples, 4 wrong"], "and counts them", said)
        got = run("lint", "--json", str(path))
        found = json.loads(got.stdout)
        check(found["findings"][0] == {"file": str(path), "line": 3,
                                       "reason": "it is not JSON"} and
              len(found["findings"]) == 4 and
              (found["examples"], found["wrong"]) == (5, 4),
              "in JSON too, as one document", found)
        path.write_text(json.dumps(GOOD))
        got = run("lint", "--loss=importance_sampling", str(path))
        check(got.returncode == 1 and "\"logprobs\"" in got.stdout,
              "the loss decides what is needed", got)
        got = run("lint", str(path))
        check(got.returncode == 0 and got.stdout == "1 example, 0 wrong\n",
              "good data passes", got)
        got = run("lint", "--loss", "nonsense", str(path))
        check(got.returncode == 0 and got.stderr == "tnk lint: loss \"nonsense\" "
              "is unknown: only the form was checked\n",
              "a loss that is not known is told", got)
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp, "odd.jsonl")
        odd = {"\u001b[2J" + "\u00e9" * 80: 1}
        path.write_bytes(b"\0 not empty\n" + json.dumps(
            {"model_input": {"chunks": []}, "loss_fn_inputs": odd}).encode())
        got = run("lint", str(path))
        check("\x1b" not in got.stdout and
              got.stdout.endswith("2 examples, 2 wrong\n"),
              "odd bytes are faults and do nothing to a terminal", got)
        got = run("lint", "--json", str(path))
        found = json.loads(got.stdout)["findings"]
        check("has no array" in found[1]["reason"],
              "a name that is cut keeps the reason in JSON", found)
    for args in (["lint"], ["lint", "--loss"], ["lint", "--x", "f"],
                 ["lint", "a", "b"], ["lint", "/nowhere/at/all"]):
        got = run(*args)
        check(got.returncode == (6 if args[-1][0] == "/" else 2) and got.stderr and not got.stdout,
              f"{args} is refused", got)
    got = run("lint", "-")
    check(got.returncode == 0 and got.stdout == "0 examples, 0 wrong\n",
          "the standard input", got)
    got = run("lint", "--help")
    check(got.returncode == 0 and "--loss" in got.stdout, "help", got)


def post(url, path, body):
    """The stub reads JSON without blanks only. None: it hung up."""
    request = urllib.request.Request(
        url + "/api/v1/" + path,
        json.dumps(body, separators=(",", ":")).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, ConnectionError):
        return None


def stub_polls():
    """Held, cut once, and told when the result was there."""
    server, url = start("--stub", "--exit-with-stdin", "--latency-ms",
                        "3600000", "--hold-ms", "1", "--stub-cut-ms", "1")
    poll = json.loads(post(url, "asample", {"num_samples": 1}))
    batch = {"prev_cursor": 0, "retrieved_request_ids": []}
    check(post(url, "retrieve_future", poll) is None, "the first poll is cut")
    got = post(url, "retrieve_future", poll)
    check(json.loads(got)["type"] == "try_again", "the second is held", got)
    check(post(url, "retrieve_futures", batch) is None, "so with batched ones")
    got = json.loads(post(url, "retrieve_futures", batch))
    check(got == {"completions": [], "cursor": 0}, "and the second", got)
    got = call(url, "stub/counts")[1]
    check((got["accepted"], got["held"], got["cut"]) == (1, 0, 2), "all is counted", got)
    check(1 <= got["connections"] <= got["most_connections"] < 9
          and got["http2_requests"] == 0, "so are the connections", got)
    end(server, "the end of the stub")
    server, url = start("--stub", "--exit-with-stdin")
    before = time.monotonic_ns()
    poll = json.loads(post(url, "asample", {"num_samples": 1, "max_tokens": 4}))
    low, mid, high = struct.unpack_from("<3i", post(url, "retrieve_future",
                                                    poll), 6)
    there = low | mid << 21 | high << 42
    # The stub's clock stands still for a turn of its loop, and counts ms.
    check(before - 10**9 < there < time.monotonic_ns(), "the moment", there)
    got = json.loads(post(url, "retrieve_futures", batch))
    check(got["cursor"] == 1 and
          got["completions"][0]["request_id"] == poll["request_id"],
          "a batched poll tells of it", got)
    end(server, "the end of another stub")


def samples():
    """What the stub says, and the log of it; files that are not there."""
    with tempfile.TemporaryDirectory() as where:
        said, log = where + "/said", where + "/log"
        pathlib.Path(said).write_text('"Hi \\u00e9"\n[300]\n')
        server, url = start("--stub", "--exit-with-stdin", "--stub-answers",
                            said, "--sample-log", log)
        body = {"num_samples": 2, "max_tokens": 9,
                "prompt": {"chunks": [{"type": "encoded_text", "tokens": [5]}]}}
        name = json.loads(post(url, "asample", body))["request_id"]
        lines = [json.loads(line) for line in open(log)]
        check([(line["request_id"], line["index"], line["weights"],
                line["prompt"], bytes(line["tokens"]) if i == 0 else
                line["tokens"], len(line["logprobs"]), line["stop_reason"])
               for i, line in enumerate(lines)] ==
              [(name, 0, None, [5], "Hi \u00e9".encode(), 5, "stop"),
               (name, 1, None, [5], [300], 1, "stop")], "the sample log", lines)
        end(server, "the end of a stub with answers")
        pathlib.Path(said).write_text('"a"\nno text\n')
        for args, words in ((["--stub-answers", said], "line 2"),
                            (["--stub-answers", where + "/none"], "cannot open"),
                            (["--sample-log", where + "/no/log"],
                             "cannot write to")):
            got = run("local", "--stub", *args)
            check(got.returncode == 6 and words in got.stderr and not got.stdout,
                  f"{args[0]} with a file that is none", got)


def wide():
    """Ids of any tokenizer, sampled and refused."""
    server, url = start("--exit-with-stdin", "--vocab", "151936")
    session = call(url, "create_session", {"tags": [], "sdk_version": "x"})[1]["session_id"]
    sampler = call(url, "create_sampling_session", {
        "session_id": session, "sampling_session_seq_id": 0,
        "base_model": "tnk/byte-lm"})[1]["sampling_session_id"]
    body = {"sampling_session_id": sampler, "seq_id": 1, "num_samples": 1,
            "prompt": {"chunks": [{"type": "encoded_text", "tokens": [151935]}]},
            "sampling_params": {"max_tokens": 40, "seed": 1, "stop": [151934]}}
    name = call(url, "asample", body)[1]["request_id"]
    got = {}
    while "sequences" not in got:
        got = call(url, "retrieve_future", {"request_id": name})[1]
    tokens = got["sequences"][0]["tokens"]
    check(len(tokens) == 40 and max(tokens) > 50000 and max(tokens) < 151936 and
          all(p < 0 for p in got["sequences"][0]["logprobs"]), "wide ids", got)
    body["prompt"]["chunks"][0]["tokens"] = [151936]
    got = call(url, "asample", {**body, "seq_id": 2})
    check(got[0] == 422 and "0 to 151935" in json.dumps(got[1]), "ids beyond them", got)
    end(server, "the end of a wide one")


def read(stream, n):
    got = b""
    while len(got) < n:
        piece = stream.recv(n - len(got))
        if not piece:
            raise ConnectionError(f"only {got!r}")
        got += piece
    return got


def get_by_http2(stream):
    """GET /api/v1/healthz: the first header of the answer in its coded form,
    which for :status 200 is 0x88, and the body."""
    path = b"/api/v1/healthz"
    head = b"\x82\x86\x04" + bytes([len(path)]) + path + b"\x01\x01x"
    stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4" + bytes(5)
                   + len(head).to_bytes(3, "big") + b"\1\5\0\0\0\1" + head)
    status = None
    while True:
        frame = read(stream, 9)
        payload = read(stream, int.from_bytes(frame[:3], "big"))
        if frame[3] == 1:
            status = payload[0]
        elif frame[3] == 0 and payload:
            return status, payload


def versions():
    """HTTP/2 and TLS, on both servers; or what a build without the first says."""
    has_h2 = "HTTP/2 with" in run("version").stdout
    files = ["--tls-cert", PEM, "--tls-key", PEM]
    wanted = (0x88, b'{"status":"ok"}')
    for stub in ([], ["--stub"]):
        server, url = start("--exit-with-stdin", "--verbose", *stub)
        host, port = url.removeprefix("http://").split(":")
        if has_h2:
            with socket.create_connection((host, int(port)), 60) as plain:
                got = get_by_http2(plain)
            check(got == wanted, "HTTP/2 without TLS", got)
        check(call(url, "healthz")[0] == 200, "HTTP/1.1 beside it")
        server.stdin.close()
        check(server.wait(60) == 0, "the end")
        told = [line.split()[-1] for line in server.stderr.read().splitlines()]
        check(stub or told == ["HTTP/2"] * has_h2 + ["HTTP/1.1"], "both are told", told)
        server.stdout.close()
        server.stderr.close()
        server, url = start("--exit-with-stdin", *files, *stub)
        check(url.startswith("https://"), "an https address", url)
        trust = ssl.create_default_context(cafile=PEM)
        with urllib.request.urlopen(url + "/api/v1/healthz", context=trust,
                                    timeout=60) as answer:
            check(answer.read() == wanted[1], "HTTP/1.1 over TLS")
        trust.set_alpn_protocols(["h2", "http/1.1"])
        with socket.create_connection((host, int(url.rsplit(":", 1)[1])), 60) as plain:
            with trust.wrap_socket(plain, server_hostname="localhost") as secure:
                got = secure.selected_alpn_protocol()
                check(got == ("h2" if has_h2 else "http/1.1"), "what is agreed upon", got)
                if has_h2:
                    got = get_by_http2(secure)
                    check(got == wanted, "HTTP/2 over TLS", got)
        end(server, "the end of one with TLS")
    for cert, key, words in (("/nowhere.pem", PEM, "the certificate in /nowhere.pem: no such"),
                             (PEM, __file__, f"private key in {__file__}"),
                             (__file__, PEM, f"certificate in {__file__}")):
        for stub in ([], ["--stub"]):
            got = run("local", "--tls-cert", cert, "--tls-key", key, *stub)
            check(got.returncode == 1 and words in got.stderr and not got.stdout,
                  "files that cannot be used", got)


def too_many():
    """One connection, and what becomes of the second."""
    for stub in ([], ["--stub"]):
        for mode in ("503", "close", "reset"):
            server, url = start("--exit-with-stdin", "--max-connections", "1",
                                "--full", mode, *stub)
            host, port = url.removeprefix("http://").split(":")
            first = socket.create_connection((host, int(port)), 60)
            first.sendall(b"GET /api/v1/healthz HTTP/1.1\r\n\r\n")
            check(first.recv(12) == b"HTTP/1.1 200", "the first is served")
            try:
                with urllib.request.urlopen(url + "/api/v1/healthz", timeout=60):
                    got = 200
            except urllib.error.HTTPError as err:
                got = str(err.code)
            except OSError as err:
                got = "reset" if "reset" in str(err) else "close"
            # A close with the request unread is a reset as well.
            check(got == mode or (got, mode) == ("reset", "close"), "the second", got)
            first.close()
            end(server, "the end")


command_lines()
standard_files()
versions()
too_many()
top()
lint()
cannot_serve()
few_files()
model_dir()
model_name()
tokenizer()
serving()
switches()
faults()
stub_polls()
samples()
wide()
plan()
