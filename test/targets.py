#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints what the tests need that are in none of the suites: files of a build.

    test/targets.py BUILD SUITE ...
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.check_output(['meson', 'introspect', build, '--' + what]))


def main():
    build, left = os.path.realpath(sys.argv[1]), set(sys.argv[2:])
    files = {target['id']: target['filename'] for target in introspect(build, 'targets')}
    needed = set()
    for test in introspect(build, 'tests'):
        if left.isdisjoint(name.split(':')[-1] for name in test['suite']):
            for target in test['depends']:
                needed.update(files[target])
    if not needed:
        sys.exit(f'{sys.argv[0]}: all tests of {build} are in these suites')
    for name in sorted(needed):
        print(os.path.relpath(name, build))


if __name__ == '__main__':
    main()
