#!/bin/sh
# SPDX-License-Identifier: MIT
# Calls that are unsafe, locale-bound, or that go around the allocator.
set -eu
cd "$1"
bad=0
look() {
  found=$(grep -nE "$2" $3 2>/dev/null | grep -vE "$4" || true)
  if [ -n "$found" ]; then
    echo "$1:"
    echo "$found"
    bad=1
  fi
}
sources=$(find src bench examples -name '*.[ch]' -o -name '*.cc')
look 'unsafe or locale-bound call' \
  '\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atof|strtok|strptime|setlocale|alloca)\(' \
  "$sources" '^$'
library=$(find src/lib -name '*.[ch]')
# All libraries; libtnk-sentencepiece is C++ around another library.
libraries="$library $(find src/chat src/gateway src/server src/tokenizers -name '*.[ch]')"
look 'memory that does not come from the allocator' \
  '(^|[^_a-z>.])(malloc|calloc|realloc|free|strdup|strndup)\(' \
  "$libraries" '^src/lib/base/alloc\.c|^[^:]*:[0-9]+: \*'
look 'locks and atomics outside runtimes and queues: there is one thread' \
  '\b(_Atomic|pthread_mutex|uv_mutex|uv_rwlock|uv_cond)' \
  "$library" '^src/lib/api/(runtime|queue)\.c'
look 'a clock outside loop/' '\b(uv_hrtime|uv_now|clock_gettime|time\(NULL\)|gettimeofday)' \
  "$library" '^src/lib/io/loop/'
look 'output of a library' '\b(printf|fprintf|puts|perror)\(' "$library" '^src/lib/base/misuse\.c'
exit $bad
