#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A download of a saved state that is killed at random moments and begun anew.

usage: kill_state.py TAKE

The weights are saved for other programs first, which a download that is begun
anew finds again or replaces. Moments are counted in what the service and the
store were asked for and have sent, not in time: each kill comes behind one of
them, wherever that is. In the end the files are complete and equal, and nothing
that was saved for a download is left at the service.
"""
import json
import pathlib
import random
import shutil
import sys
import tempfile

import kill
from tap import check, plan

KILLS = 20
PIECE = 32 * 1024
STATE = "tinker://r/weights/a"
RUNS = "/api/v1/training_runs/"
EXPORT = "/checkpoints/external_weights/download"


class Service(kill.Handler):
    exports = set()
    n_models = 0
    n_again = 0  # that were found by another process than the one that had them made

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        call = self.path.removeprefix("/api/v1/")
        self.moments.tick()
        result = self.result(call, body)
        if result is None:
            self.close_connection = True
        else:
            self.answer(result)

    def result(self, call, body):
        own = type(self)
        if call == "create_session":
            return {"session_id": "s"}
        if call == "load_weights":
            own.n_models += 1
            if own.n_models == 1:
                # The first program is killed here, and has saved nothing that can be found again.
                self.moments.end()
                return None
            return {"request_id": f"load:{own.n_models}"}
        if call == "save_weights_external":
            own.exports.add(body["model_id"])
            return {"request_id": f"save:{body['model_id']}"}
        if call == "get_info":
            return {"model_id": body["model_id"], "model_data": {"model_name": "m"}}
        if call != "retrieve_future":
            return {}
        kind, _, name = body["request_id"].partition(":")
        if kind == "load":
            return {"model_id": f"m{name}"}
        return {"path": f"tinker://{name}/external_weights/download"}

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.moments.tick()
        type(self).n_again += 1
        self.answer({})

    def do_DELETE(self):
        self.moments.tick()
        type(self).exports.discard(self.path.removeprefix(RUNS).removesuffix(EXPORT))
        self.answer({})

    def do_GET(self):
        self.moments.tick()
        run, _, rest = self.path.removeprefix(RUNS).partition(EXPORT)
        if rest == "/external_weights_urls" and run not in self.exports:
            self.answer({"detail": "no such checkpoint"}, 404)
        elif rest == "/external_weights_urls":
            self.sign()
        else:
            self.fetch()

    def wrote(self):
        self.moments.tick()


def check_round(target, killed_late):
    for name, data in Service.files.items():
        check((target / name).read_bytes() == data, f"{name} is complete and equal")
    left = [path.name for path in target.parent.iterdir() if path != target]
    check(not left or killed_late, "nothing is left beside the directory", left)
    check(not Service.exports or killed_late, "and nothing at the service", Service.exports)


def main():
    take = sys.argv[1]
    rng = random.Random(14)
    Service.files = {f"part-{i}.bin": rng.randbytes(8 * PIECE + i) for i in range(3)}
    Service.files["adapter_config.json"] = b"{}"
    url = kill.serve(Service)
    n_kills = n_rounds = 0
    with tempfile.TemporaryDirectory() as folder:
        while n_kills < KILLS:
            n_rounds += 1
            target = pathlib.Path(folder, str(n_rounds), "out")
            Service.exports.clear()
            status = None
            while status is None:
                status = kill.one_life(Service, [take, url, STATE, str(target)],
                                       rng.randrange(1, 45) if n_kills < KILLS else None)
                n_kills += status is None
            # One that was killed when all but its own end was over finds all there.
            check_round(target, killed_late=status != 0)
            shutil.rmtree(target.parent)
    print(f"# {n_kills} kills in {n_rounds} downloads; {Service.n_models} times saved, "
          f"{Service.n_again} times found again")
    check(Service.n_again > 0 and n_rounds < Service.n_models < n_kills + n_rounds,
          "what was saved is found again, or replaced", (Service.n_again, Service.n_models))
    plan()


main()
