#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs that are killed, and what becomes of them: their final weights are those of
a run that nobody disturbed, bit for bit.

usage: kill.py BUILD_DIR TNK_COMMAND

examples/sft and examples/rl train against `tnk local --data`, of which 5% of the
requests go wrong. Client, server or both are killed with SIGKILL; then what was
killed is started anew, until the run has ended. Moments are counted in requests
that the server has seen, not in time: a kill comes behind one of them, wherever
client and server are by then. In some runs the directory of the ledger is deleted
as well. KILLS=50 makes so many kills, SEED=N other ones; each is told as a row of
the table in the README here. Output is TAP.
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ports import reserve  # noqa: E402
from tap import check, plan  # noqa: E402

BUILD = pathlib.Path(sys.argv[1])
TNK = sys.argv[2]
# Under sanitizers, which are slow, fewer: they have nothing to say to a kill.
KILLS = int(os.environ.get("KILLS", "2" if "TNK_TEST_STRETCH" in os.environ else "6"))
SEED = int(os.environ.get("SEED", "1"))
FAULTS = "mild=5%"
MAX_LIVES = 12  # of a client: it ends with each kill, and when its session is gone
ENV = {k: v for k, v in os.environ.items() if not k.startswith("TINKER_")}
ENV.update(no_proxy="*", TINKER_API_KEY="tml-local")
CHATS = "".join(
    f'{{"messages": [{{"role": "user", "content": "say {i % 5}"}}, '
    f'{{"role": "assistant", "content": "{"ab" * (i % 5 + 1)}"}}]}}\n'
    for i in range(60))


class Server:
    """`tnk local` on one port for all its lives; counts the requests it sees."""

    def __init__(self, folder, faults):
        self.folder = folder
        self.faults = faults
        self.port = reserve()
        self.n_seen = 0
        self.changed = threading.Condition()
        self.start()

    def start(self):
        command = [TNK, "local", "--port", str(self.port), "--exit-with-stdin",
                   "--verbose", "--data", self.folder / "data"]
        if self.faults:
            command += ["--faults", self.faults]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, env=ENV,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        self.child.stdout.readline()
        threading.Thread(target=self.count, args=(self.child.stderr,),
                         daemon=True).start()

    def count(self, lines):
        for _ in lines:
            with self.changed:
                self.n_seen += 1
                self.changed.notify_all()

    def wait(self, n_seen, client):
        """Until it has seen so many, or the client has ended by itself."""
        with self.changed:
            while self.n_seen < n_seen and client.poll() is None:
                self.changed.wait(0.01)

    def stop(self):
        self.child.stdin.close()
        self.child.wait(60)


def commands(folder):
    chats = folder / "chats"
    chats.write_text(CHATS)
    state = folder / "state"
    return {"sft": [BUILD / "examples/sft", chats, state, "14", "4"],
            "rl": [BUILD / "examples/rl", state, "5"]}


def start(server, program):
    env = {**ENV, "TINKER_BASE_URL": f"http://127.0.0.1:{server.port}"}
    return subprocess.Popen(commands(server.folder)[program], env=env,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def weights(folder):
    """The state that ends the run, with the optimizer."""
    lines = (folder / "state/checkpoints.jsonl").read_text().splitlines()
    paths = [re.search(r'"state_path":"tinker://([^"]+)"', line)
             for line in lines if '"final":true' in line]
    run, kind, name = [p for p in paths if p][-1][1].split("/")
    place = folder / "data" / run.replace(":", "_") / kind / name
    return [(place / name).read_bytes()
            for name in ("adapter_model.safetensors",
                         "optimizer.safetensors")]


def undisturbed(program):
    """Its weights, and how many requests it takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Server(folder, None)
        client = start(server, program)
        told, _ = client.communicate(timeout=600)
        check(client.returncode == 0, f"{program} alone succeeds", told)
        server.stop()
        return weights(folder), server.n_seen


def kill(server, client, victim):
    if victim != "server":
        client.kill()
    if victim != "client":
        server.child.send_signal(signal.SIGKILL)
        server.child.wait()
        server.start()
    if victim != "server":
        client.wait()


def lives_of(server, program, moments, victim, loses):
    """The clients' words, until one succeeds; None: none did."""
    told = []
    for _ in range(MAX_LIVES):
        client = start(server, program)
        if moments:
            server.wait(server.n_seen + moments[0], client)
        if moments and client.poll() is None:
            moments.pop(0)
            kill(server, client, victim)
            if loses:  # as a disk that is lost with the machine
                client.kill()
                client.wait()
                subprocess.run(["rm", "-rf", server.folder / "state"], check=True)
        words, _ = client.communicate(timeout=600)
        told.append(words)
        if client.returncode == 0:
            return told
    return None


def disturbed(rng, n, program, wanted, n_requests):
    """One run with two kills at most; how many there were."""
    victim = ("client", "server", "both")[n % 3]
    loses = n % 5 in (2, 4)
    moments = [rng.randrange(1, n_requests + 1),
               rng.randrange(1, n_requests // 2)]
    planned = list(moments)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Server(folder, f"{FAULTS},seed={rng.randrange(1000)}")
        told = lives_of(server, program, moments, victim, loses)
        server.stop()
        n_kills = len(planned) - len(moments)
        resumed = [re.search(r"resuming at \w+ (\d+)", words)
                   for words in told or []]
        went = ", ".join(at[1] if at else "0" for at in resumed)
        same = told is not None and weights(folder) == wanted
        print(f"# | {program} | {victim} | "
              f"{', '.join(map(str, planned[:n_kills]))} of {n_requests} | "
              f"{'lost' if loses else 'kept'} | {went} | "
              f"{'equal' if same else 'different'} |", flush=True)
        check(same, f"{program}, {victim} killed: the weights are those of a run "
              "that was not disturbed", told)
    return n_kills


def main():
    rng = random.Random(SEED)
    wanted = {}
    print("# | program | killed | behind request | directory | began at | "
          "weights |\n# |---|---|---|---|---|---|")
    n_kills = n = 0
    while n_kills < KILLS:
        program = ("sft", "rl")[n % 2]
        if program not in wanted:
            wanted[program] = undisturbed(program)
        n_kills += disturbed(rng, n, program, *wanted[program])
        n += 1
    print(f"# {n_kills} kills in {n} runs")
    plan()


if __name__ == "__main__":
    main()
