# SPDX-License-Identifier: MIT
"""The output of a program that must not run ahead of who reads it.

    sys.path.insert(0, .../test/support)
    from pipe import Paced
"""
import fcntl
import os
import subprocess


class Paced(subprocess.Popen):
    """A program with `lines`, what it prints. Its output is a pipe with room for one write, and the
    program must write line by line. When a line has been read, the program may have printed the next
    one. It waits before it prints another one. Only Linux has such pipes."""

    def __init__(self, command, **more):
        back, front = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
        fcntl.fcntl(front, fcntl.F_SETPIPE_SZ, 4096)
        self.lines = self.read(back)
        try:
            super().__init__(command, stdout=front, **more)
        finally:
            os.close(front)

    @staticmethod
    def read(back):
        with open(back, "rb", buffering=0) as file:
            while line := file.read(65536):
                yield line.decode()
