#!/bin/sh
# SPDX-License-Identifier: MIT
# A program outside of this tree builds against the installed library with what
# pkg-config says, and runs.
#
#   check_install.sh BUILD_DIR PREFIX shared|static
set -eu
build=$1
prefix=$2
kind=$3
data=$(cd "$(dirname "$0")/../tokenizers/data" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT INT TERM
meson install -C "$build" --no-rebuild --quiet --destdir "$stage"
pc=$(find "$stage" -name tnk.pc)
export PKG_CONFIG_PATH="${pc%/tnk.pc}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

cp "$(dirname "$0")/program.c" "$stage/"

cat >"$stage/tokenizers.c" <<'END'
#include <tnk/tokenizers.h>

#include <stdio.h>

/* The second argument is a model that the installed module reads. */
int main(int argc, char **argv) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok = NULL;
  size_t n = 1;
  tnk_tokens_ids(tokens, &n);
  tnk_tokens_free(tokens);
  if (argc > 1 && tnk_tokenizer_load(&tok, argv[1], NULL, &error) < 0) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  tnk_tokenizer_unref(tok);
  return n != 0;
}
END

cat >"$stage/both.c" <<'END'
#include <tnk/tnk.h>
#include <tnk/tokenizers.h>

int main(void) {
  tnk_prompt_t *input;
  char why[100];
  return tnk_prompt_from_text(&input, tnk_tokenizer_plugin(), NULL, "a", 1,
                                   0, NULL, why, sizeof(why)) != TNK_EINVAL;
}
END

cat >"$stage/gateway.c" <<'END'
#include <tnk/gateway.h>
#include <tnk/tnk.h>
#include <uv.h>

int main(void) {
  tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
  tnk_gateway_t *gateway = NULL;
  tnk_service_t *service;
  uv_loop_t loop;
  char why[256];
  int err = uv_loop_init(&loop);

  if (err == 0)
    err = tnk_service_open(&service, &loop, NULL, why, sizeof(why));
  options.tokenizer.plugin = tnk_chat_bytes_plugin();
  if (err == 0)
    err = tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why));
  tnk_gateway_close(gateway, NULL, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  tnk_service_close(service, NULL, NULL);
  uv_run(&loop, UV_RUN_DEFAULT);
  return err != 0 || uv_loop_close(&loop) != 0;
}
END

# What belongs to the command, where it was built and could be asked.
if [ -n "$(find "$stage" -path '*/bin/tnk')" ] && [ -n "$(find "$stage" -name tnk.1)" ]; then
  for command in $("$(find "$stage" -path '*/bin/tnk')" --help |
    sed -n 's/^  tnk \([a-z-]*\).*/\1/p'); do
    [ -s "$(find "$stage" -path "*/man1/tnk-$command.1")" ] || {
      echo "tnk $command has no man page"
      exit 1
    }
  done
  for place in bash-completion/completions/tnk zsh/site-functions/_tnk \
    fish/vendor_completions.d/tnk.fish; do
    [ -s "$(find "$stage" -path "*/$place")" ] || {
      echo "$place is not installed"
      exit 1
    }
  done
fi

ask() {
  pkg-config "--define-variable=prefix=$stage$prefix" "$@"
}
[ "$kind" = static ] && static=--static || static=
LD_LIBRARY_PATH=$(ask --variable=libdir tnk)
export LD_LIBRARY_PATH TINKER_API_KEY=tml-key TINKER_BASE_URL=http://127.0.0.1:1

# check SOURCE PACKAGE ...
check() {
  source=$1
  shift
  # shellcheck disable=SC2046,SC2086
  ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror "$stage/$source" -o "$stage/program" \
    $(ask $static --cflags --libs "$@")
  "$stage/program"
  if [ "$kind" = static ] && ldd "$stage/program" | grep -q libtnk; then
    echo 'the static program still needs the shared library'
    exit 1
  fi
}
check program.c tnk libuv
check gateway.c tnk-gateway libuv
if ask --exists tnk-tokenizers; then
  check tokenizers.c tnk-tokenizers
  if [ -n "$(find "$stage" -name 'libtnk-sentencepiece*.so' -path '*/tnk-[0-9]*')" ]; then
    "$stage/program" "$data/sp_bpe.model"
  elif [ -n "$(find "$stage" -name 'libtnk-sentencepiece*.so')" ]; then
    echo 'the module of SentencePiece is in no folder of its version'
    exit 1
  fi
  check both.c tnk tnk-tokenizers
fi
