# SPDX-License-Identifier: MIT
"""TAP for tests in Python: one point a check, the first that fails ends the run.

    sys.path.insert(0, .../test/support)
    from tap import check, plan
"""
import sys

N_CHECKS = 0


def check(ok, what, got=""):
    """`got` is shown when it is not ok."""
    global N_CHECKS
    N_CHECKS += 1
    print(f"{'ok' if ok else 'not ok'} {N_CHECKS} - {what}")
    if not ok:
        plan()
        for line in str(got).splitlines():
            print("# " + line)
        # `meson test --print-errorlogs` shows no comments of TAP.
        print(f"not ok: {what}: {got}", file=sys.stderr)
        sys.exit(1)


def skip(what, why):
    """What cannot be tried here; counted as skipped."""
    global N_CHECKS
    N_CHECKS += 1
    print(f"ok {N_CHECKS} - {what} # SKIP {why}")


def plan():
    """At the end: how many there were."""
    print(f"1..{N_CHECKS}")
