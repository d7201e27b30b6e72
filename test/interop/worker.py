# SPDX-License-Identifier: MIT
"""Runs groups of cases with the client that this Python has, and prints one
line of JSON for each case, then one with the calls that were made."""

import argparse
import importlib
import json
import os
import signal
import sys
import time
import traceback
import warnings

import kit


def on_alarm(_signal, _frame):
    raise TimeoutError("the case took too long")


def run_one(fn, context, limit):
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(limit)
    try:
        fn(context)
        return "passed", ""
    except kit.Skip as why:
        return "skipped", str(why)
    except BaseException as error:  # also what the client raises of its own
        if isinstance(error, KeyboardInterrupt):
            raise
        return "failed", "".join(traceback.format_exception(error))
    finally:
        signal.alarm(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flags", default="{}")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("groups", nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    from importlib.metadata import version

    context = kit.Context(os.environ["TINKER_BASE_URL"], json.loads(args.flags), version("tinker"))
    for group in args.groups:
        kit.CASES.clear()
        importlib.import_module(f"cases.{group}")
        for fn in list(kit.CASES):
            if args.only and args.only not in fn.__name__:
                continue
            began = time.monotonic()
            outcome, text = run_one(fn, context, args.limit)
            took = round(time.monotonic() - began, 2)
            print(json.dumps({"case": f"{group}.{fn.__name__}", "outcome": outcome, "text": text,
                              "seconds": took}), flush=True)
    print(json.dumps({"calls": dict(kit.CALLS), "own": len(kit.OWN)}), flush=True)
    sys.stdout.flush()
    # The client's threads and its telemetry do not matter any more.
    os._exit(0)


if __name__ == "__main__":
    main()
