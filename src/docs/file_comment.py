#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Input filter for Doxygen: the introduction of a header becomes the text of its file.

usage: file_comment.py HEADER

Doxygen shows functions only of files with a @file comment. The headers have an
ordinary comment there, because it is for readers of the source.
"""
import pathlib
import re
import sys

text = pathlib.Path(sys.argv[1]).read_text()
intro = re.search(r"^/\*\n", text, re.M)
first = text.find("/**")
if intro and intro.start() < first:
    sys.stdout.write(text[:intro.start()] + "/** @file\n *\n" + text[intro.end():])
else:
    sys.stdout.write("/** @file */" + text)
