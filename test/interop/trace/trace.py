#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trace says what the observer heard, and Perfetto's messages can read it.

    python3 trace.py --tnk BUILD/src/tools/tnk/tnk --tool BUILD/test/interop/trace_tool

A program runs operations against the local server, with faults, and prints each
event. A checker of ours reads the trace: slices are nested and in order, and
those of each operation are, one by one, what the events say, to the nanosecond.
Where PyPI's perfetto is installed, its messages read the same out of the file.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "support"))
from tap import check, plan, skip  # noqa: E402

BEGIN, END, INSTANT = 1, 2, 3
Event = collections.namedtuple(
    "Event", "time operation part phase waits name client code attempt bytes "
    "status request_id")
Track = collections.namedtuple("Track", "uuid parent name process")
Step = collections.namedtuple("Step", "time kind track name facts")


# ---- Protobuf, as far as a trace has it

def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """{number: [values]} of one message."""
    out = collections.defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            n, at = varint(data, at)
            value = data[at:at + n]
            assert len(value) == n, "a message ends in the middle"
            at += n
        else:
            raise AssertionError(f"wire type {tag & 7}")
        out[tag >> 3].append(value)
    return out


def operation_of(uuid):
    return uuid & (1 << 40) - 1


def part_of(uuid):
    return (uuid >> 40) & (1 << 22) - 1


def read_facts(annotations, names):
    """What is told of a step beside its name."""
    out = []
    for message in annotations:
        m = fields(message)
        out.append((names[m[1][0]], m[3][0] if m[3] else m[6][0].decode()))
    return tuple(out)


def read_trace(data):
    """Tracks by uuid, and all steps in the order of the file."""
    tracks, steps, names, words = {}, [], {}, {}
    for packet in fields(data)[1]:
        packet = fields(packet)
        assert packet[10] == [1], "one sequence"
        for message in packet[12]:
            assert packet[13] == [1] and not names, "names come first, once"
            for name in fields(message)[2]:
                name = fields(name)
                names[name[1][0]] = name[2][0].decode()
            for name in fields(message)[3]:
                name = fields(name)
                words[name[1][0]] = name[2][0].decode()
        for message in packet[60]:
            m = fields(message)
            tracks[m[1][0]] = Track(m[1][0], m[5][0] if m[5] else None,
                                    m[2][0].decode() if m[2] else None,
                                    bool(m[3]))
        for message in packet[11]:
            m = fields(message)
            assert packet[13] == [2] and names, "a step needs the names"
            name = m[23][0].decode() if m[23] else None
            steps.append(Step(packet[8][0], m[9][0], m[11][0],
                              names[m[10][0]] if m[10] else name,
                              read_facts(m[4], words)))
    return tracks, steps


def read_with_perfetto(data):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages
    trace = messages.Trace.FromString(data)
    tracks, steps, names, words = {}, [], {}, {}
    for p in trace.packet:
        for name in p.interned_data.event_names:
            names[name.iid] = name.name
        for name in p.interned_data.debug_annotation_names:
            words[name.iid] = name.name
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            tracks[d.uuid] = Track(
                d.uuid, d.parent_uuid if d.HasField("parent_uuid") else None,
                d.name if d.HasField("name") else None, d.HasField("process"))
        if p.HasField("track_event"):
            e = p.track_event
            name = e.name if e.HasField("name") else None
            steps.append(Step(p.timestamp, e.type, e.track_uuid,
                              names[e.name_iid] if e.name_iid else name,
                              tuple((words[a.name_iid],
                                     a.uint_value if a.HasField("uint_value")
                                     else a.string_value)
                                    for a in e.debug_annotations)))
    return tracks, steps


# ---- What the events say

def slices_of(steps):
    """{track: [(depth, name, begin, end)]}; every slice ends, inside of the
    one around it."""
    open_ones = collections.defaultdict(list)
    out = collections.defaultdict(list)
    last = 0
    for step in steps:
        assert step.time >= last, "time goes back"
        last = step.time
        stack = open_ones[step.track]
        if step.kind == BEGIN:
            stack.append((step.name, step.time))
        elif step.kind == END:
            assert stack, "an end without a beginning"
            name, begin = stack.pop()
            out[step.track].append((len(stack), name, begin, step.time))
    assert not any(open_ones.values()), "a slice has no end"
    return out


def name_of(event):
    return (event.phase if event.phase != "waits"
            else f"waits for {event.waits}")


def expected_slices(events):
    """The same from the events: {(operation, part): slices}."""
    out = collections.defaultdict(list)
    for operation in sorted({e.operation for e in events}):
        own = [e for e in events if e.operation == operation]
        ends = [e for e in own if e.phase in ("decoded", "failed")]
        assert len(ends) == 1, "an operation ends once"
        for part in sorted({e.part for e in own}):
            mine = [e for e in own if e.part == part and
                    e.phase not in ("decoded", "failed", "delivered")]
            depth = 1 if part == 0 else 0
            times = [e.time for e in mine[1:]] + [ends[0].time]
            for event, end in zip(mine, times):
                out[operation, part].append(
                    (depth, name_of(event), event.time, end))
        out[operation, 0].append((0, own[0].name, own[0].time, ends[0].time))
    return out


def facts_of(event):
    """What a trace says of an event; that all is well it does not."""
    out = []
    if event.phase in ("queued", "delivered"):
        return ()
    if event.attempt > 1:
        out.append(("attempt", event.attempt))
    if event.bytes > 0:
        out.append(("bytes", event.bytes))
    if event.status not in (0, 200):
        out.append(("status", event.status))
    if event.code != "-":
        out.append(("code", event.code))
    if event.request_id != "-" and event.phase in ("accepted", "failed"):
        out.append(("request_id", event.request_id))
    return tuple(out)


def check_facts(steps, events):
    want = sorted([(e.time, e.operation, e.part, facts_of(e)) for e in events
                   if facts_of(e)] +
                  [(e.time, e.operation, 0, (("operation", e.operation),))
                   for e in events if e.phase == "queued"])
    got = sorted((s.time, operation_of(s.track), part_of(s.track), s.facts)
                 for s in steps if s.facts)
    told = {name for *_, facts in got for name, _ in facts}
    check(told == {"operation", "attempt", "bytes", "status", "code",
                   "request_id"}, "facts of every kind are told", told)
    check(got == want, "facts are those of the events",
          [pair for pair in zip(got, want) if pair[0] != pair[1]][:3])


def check_trace(data, events):
    tracks, steps = read_trace(data)
    slices = slices_of(steps)
    check(len(slices) > 0, "slices are nested, in order and all ended")
    want = expected_slices(events)
    got = {(operation_of(uuid), part_of(uuid)): part
           for uuid, part in slices.items()}
    check(got == want, "each slice begins and ends with the events",
          str([k for k in want if got.get(k) != want[k]][:3]))
    sums = {op: sum(end - begin for depth, _, begin, end in part if depth == 1)
            for (op, number), part in got.items() if number == 0}
    whole = {op: end - begin for (op, number), part in got.items()
             for depth, _, begin, end in part if depth == 0 and number == 0}
    check(sums == whole, "the phases of an operation take all of its time")
    clients = {e.operation: e.client for e in events if e.phase == "queued"}
    names = {e.operation: e.name for e in events}
    good = all(tracks[track].name == names[operation_of(track)] and
               (tracks[tracks[track].parent].name or "-") ==
               clients[operation_of(track)]
               for track in slices if part_of(track) == 0)
    check(good, "an operation is below its client, a client below the process")
    check_facts(steps, events)
    check(any(t.process for t in tracks.values()), "there is one process")
    check(sum(s.kind == INSTANT for s in steps) ==
          sum(e.phase == "delivered" for e in events),
          "each delivery is a moment")
    return tracks, steps


def run(args, faults):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "run.pftrace"
        server = subprocess.Popen(
            [args.tnk, "local", "--port", "0", *faults],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            url = None
            for line in server.stdout:
                found = re.search(r"http://[\d.]+:\d+", line)
                if found:
                    url = found[0]
                    break
            env = dict(os.environ, TINKER_BASE_URL=url,
                       TINKER_API_KEY="tml-local", no_proxy="127.0.0.1")
            done = subprocess.run([args.tool, path], env=env, text=True,
                                  capture_output=True, check=False,
                                  timeout=200)
        finally:
            server.terminate()
            server.communicate()
        check(done.returncode == 0, "the program ends well", done.stderr)
        events = [Event(int(f[0]), int(f[1]), int(f[2]), *f[3:8],
                        int(f[8]), int(f[9]), int(f[10]), f[11])
                  for f in map(str.split, done.stdout.splitlines())]
        return path.read_bytes(), events


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tnk", required=True)
    parser.add_argument("--tool", required=True)
    args = parser.parse_args()
    data, events = run(args, ["--faults", "mild=5%"])
    phases = {e.phase for e in events}
    check(phases == {"queued", "waits", "sent", "accepted", "held", "result",
                     "decoded", "failed", "delivered"},
          "all phases are there", str(phases))
    check(any(e.part > 0 for e in events), "some operation has parts")
    read = check_trace(data, events)
    try:
        with_perfetto = read_with_perfetto(data)
    except ImportError:
        skip("Perfetto's messages read the same",
             "PyPI's perfetto is not installed")
    else:
        check(with_perfetto == read, "Perfetto's messages read the same")
    plan()


main()
