#!/bin/sh
# SPDX-License-Identifier: MIT
# A program with libprotobuf and libtnk-tokenizers, linked in both orders, loads
# a SentencePiece model, and its protobuf stays libprotobuf.
#
#   protobuf.sh LIBTNK_TOKENIZERS INCLUDE_DIR MODEL
set -eu
library=$1
include=$2
model=$3
protobuf=$(ldconfig -p 2>/dev/null | sed -n 's/.*libprotobuf\.so[^ ]* .*=> //p' | head -n 1)
if [ -z "$protobuf" ]; then
  echo 'skipped: there is no libprotobuf'
  exit 77
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM

cat >"$stage/program.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tnk/tokenizers.h>

/* Of libprotobuf, and of the runtime inside of libsentencepiece as well. */
void verify(int, int, const char *)
    __asm__("_ZN6google8protobuf8internal13VerifyVersionEiiPKc");

int main(int argc, char **argv) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  Dl_info about;
  size_t n;

  if (argc < 2 || tnk_tokenizer_load(&tok, argv[1], NULL, &error) < 0 ||
      tnk_tokenizer_encode(tok, tokens, "Hello world", 11, 0, &error) < 0) {
    printf("%s\n", error.text);
    return 1;
  }
  (void)tnk_tokens_ids(tokens, &n);
  if (n == 0 || dladdr((void *)verify, &about) == 0 ||
      strstr(about.dli_fname, "libprotobuf") == NULL) {
    printf("%zu ids, protobuf is %s\n", n, about.dli_fname);
    return 1;
  }
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
  return 0;
}
END

for order in "$protobuf $library" "$library $protobuf"; do
  # shellcheck disable=SC2086
  ${CC:-cc} -std=gnu11 -I"$include" "$stage/program.c" -o "$stage/program" \
    -Wl,--no-as-needed $order -Wl,-rpath,"${library%/*}"
  "$stage/program" "$model" || {
    echo "failed when linked as: $order"
    exit 1
  }
done
echo 'both orders load the model'
