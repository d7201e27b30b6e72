# SPDX-License-Identifier: MIT
"""What trackers have of a run: event files of TensorBoard, a project of trackio, and a server of MLflow."""
import contextlib
import datetime
import http.server
import json
import sqlite3
import struct
import threading
import urllib.parse

from console import check

ALLOWED = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ ")
MISSING = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "No such experiment"}


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def fields(data):
    """The (number, value) pairs of a protobuf message; lengths are read as bytes."""
    def varint():
        nonlocal data
        value = shift = 0
        while True:
            byte, data = data[0], data[1:]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while data:
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            value, data = data[:size], data[size:]
        yield tag >> 3, value


def events_of(path, is_growing=False):
    """The events of a file: (time, step, what it has). The last one of a file that grows may be incomplete."""
    data, events = path.read_bytes(), []
    while data:
        if is_growing and (len(data) < 8 or len(data) < 16 + struct.unpack("<Q", data[:8])[0]):
            break
        size, = struct.unpack("<Q", data[:8])
        whole = len(data) >= size + 16
        record = data[12:12 + size]
        if not (whole and data[8:12] == struct.pack("<I", masked(data[:8])) and
                data[12 + size:16 + size] == struct.pack("<I", masked(record))):
            check(False, "the frame of a record", (size, len(data)))
        data = data[16 + size:]
        event = dict(fields(record))
        values = {}
        for _, value in fields(event.get(5, b"")):
            value = dict(fields(value))
            values[value[1].decode()] = struct.unpack("<f", value[2])[0]
        events.append((struct.unpack("<d", event[1])[0], event[2], event.get(3), values, event.get(7)))
    return events


def rows_of(path, what, *values):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(what, values).fetchall()


def of_run(path, name):
    """Steps, metrics and times of a run in a project of trackio."""
    rows = rows_of(path, "SELECT step, metrics, timestamp FROM metrics WHERE run_name = ? ORDER BY id", name)
    return [row[0] for row in rows], [json.loads(row[1]) for row in rows], \
        [datetime.datetime.fromisoformat(row[2]).timestamp() for row in rows]


class Server(http.server.ThreadingHTTPServer):
    """A server of MLflow. It keeps a metric that comes again with the same step, time and value once, as MLflow
    does. `fails` is an answer to calls whose path begins so. Calls with metrics whose path begins like `loses`
    are done, and get no answer."""
    allow_reuse_address = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.experiments, self.runs, self.calls, self.keys = {}, {}, [], set()
        self.fails = self.loses = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def living(self):
        return [run for run in self.runs.values() if not run["deleted"]]

    def answer(self, what, given):
        if what == "experiments/create":
            if given["name"] in self.experiments:
                return 400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "it exists"}
            self.experiments[given["name"]] = str(len(self.experiments) + 1)
            return 200, {"experiment_id": self.experiments[given["name"]]}
        if what.startswith("experiments/get-by-name?"):
            name = urllib.parse.parse_qs(what.split("?")[1])["experiment_name"][0]
            if name not in self.experiments:
                return 404, MISSING
            return 200, {"experiment": {"experiment_id": self.experiments[name], "name": name}}
        if what == "runs/search":
            key = given["filter"].split("'")[1]
            return 200, {"runs": [{"info": {"run_id": run["id"]}} for run in self.living()
                                  if run["tag"] == key and run["experiment"] in given["experiment_ids"]]}
        if what == "runs/create":
            run = {"id": f"run{len(self.runs)}", "experiment": given["experiment_id"], "name": given["run_name"],
                   "start": given["start_time"], "tag": given["tags"][0]["value"], "metrics": [], "params": {}, "seen": set(),
                   "status": None, "deleted": False}
            self.runs[run["id"]] = run
            return 200, {"run": {"info": {"run_id": run["id"]}}}
        run = self.runs[given["run_id"]]
        if what == "runs/log-batch":
            metrics, params = given.get("metrics", []), given.get("params", [])
            names = [one["key"] for one in metrics + params]
            if len(metrics) > 1000 or len(params) > 100 or not all(set(name) <= ALLOWED and len(name) <= 250 for name in names) \
                    or any(len(one["value"]) > 6000 or one["key"] in run["params"] for one in params):
                return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "out of limits"}
            for one in metrics:
                if (key := tuple(sorted((name, str(value)) for name, value in one.items()))) not in run["seen"]:
                    run["seen"].add(key)
                    run["metrics"].append(one)
            run["params"].update((one["key"], one["value"]) for one in params)
        elif what == "runs/update":
            run["status"] = given["status"]
        elif what == "runs/delete":
            run["deleted"] = True
        return 200, {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_call(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = self.path.removeprefix("/api/2.0/mlflow/")
        self.server.calls.append(what)
        self.server.keys.add(self.headers.get("Authorization"))
        fails = self.server.fails
        if fails is not None and what.startswith(fails[0]):
            status, answer = fails[1:]
        else:
            status, answer = self.server.answer(what, json.loads(body) if body else None)
        if self.server.loses is not None and what.startswith(self.server.loses) and b'"metrics"' in body:
            self.close_connection = True
            return
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = handle_call

    def log_message(self, *args):
        pass
