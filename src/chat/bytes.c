/* SPDX-License-Identifier: MIT */
/* Bytes as tokens: the tokenizer of the built-in model. */
#include <stdio.h>
#include <string.h>

#include "tnk/chat.h"

enum { BEGIN = 256, END = 257 };
enum { PLAIN = 1 }; /* flag of encoding: treat special tokens as text */

static const char *const names[] = {"<|begin|>", "<|end|>"};

static int open_bytes(void **tokenizer, const char *path,
                      const tnk_pair_t *overrides, size_t n_overrides,
                      const tnk_allocator_t *allocator, char *why,
                      size_t why_size) {
  (void)path;
  (void)overrides;
  (void)allocator;
  *tokenizer = NULL;
  if (n_overrides == 0) {
    *tokenizer = (void *)(uintptr_t)names;
    return TNK_OK;
  }
  if (why_size > 0)
    (void)snprintf(why, why_size, "bytes know no override");
  return TNK_ENOTSUP;
}

static void close_bytes(void *tokenizer) {
  (void)tokenizer;
}

/* The special token at the start of a text, or -1. */
static int special_at(const char *text, size_t n) {
  if (n > 0 && text[0] == '<')
    for (int i = 0; i < 2; i++)
      if (strlen(names[i]) <= n &&
          memcmp(text, names[i], strlen(names[i])) == 0)
        return i;
  return -1;
}

static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  int32_t ids[512];
  size_t n_ids = 0;
  int err = TNK_OK;

  (void)tokenizer;
  if ((flags & ~(unsigned)PLAIN) != 0) {
    if (why_size > 0)
      (void)snprintf(why, why_size, "bytes have no such flag");
    return TNK_EINVAL;
  }
  for (size_t i = 0; i < n && err == TNK_OK;) {
    const int special = (flags & PLAIN) != 0 ? -1 : special_at(text + i, n - i);

    ids[n_ids++] = special >= 0 ? BEGIN + special : (unsigned char)text[i];
    i += special >= 0 ? strlen(names[special]) : 1;
    if (n_ids == sizeof(ids) / sizeof(*ids) || i == n) {
      err = take(ids, n_ids, user);
      n_ids = 0;
    }
  }
  return err;
}

static int decode(const void *tokenizer, const int32_t *ids, size_t n,
                  unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                  size_t why_size) {
  char bytes[512];
  size_t n_bytes = 0;
  int err = TNK_OK;

  (void)tokenizer;
  if (flags != 0) {
    if (why_size > 0)
      (void)snprintf(why, why_size, "bytes know no flag");
    return TNK_EINVAL;
  }
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    const char byte = (char)(unsigned char)(ids[i] & 0xff);

    if (ids[i] == BEGIN || ids[i] == END) {
      memcpy(bytes + n_bytes, names[ids[i] - BEGIN],
             strlen(names[ids[i] - BEGIN]));
      n_bytes += strlen(names[ids[i] - BEGIN]);
    } else if (ids[i] >= 0 && ids[i] < BEGIN) {
      bytes[n_bytes++] = byte;
    }
    if (n_bytes > sizeof(bytes) - 16 || (i + 1 == n && n_bytes > 0)) {
      err = take(bytes, n_bytes, user);
      n_bytes = 0;
    }
  }
  return err;
}

static const char *added(const void *tokenizer, size_t index, size_t *n,
                         int32_t *id) {
  (void)tokenizer;
  if (index >= sizeof(names) / sizeof(names[0]))
    return NULL;
  *n = strlen(names[index]);
  *id = BEGIN + (int32_t)index;
  return names[index];
}

static const char *const main_files[] = {"tokenizer.json", NULL};

static const tnk_tokenizer_plugin_t plugin = {
    .size = sizeof(plugin),
    .name = "bytes",
    .main_files = main_files,
    .open = open_bytes,
    .close = close_bytes,
    .encode = encode,
    .decode = decode,
    .added = added,
    .plain_flags = PLAIN,
};

const tnk_tokenizer_plugin_t *tnk_chat_bytes_plugin(void) {
  return &plugin;
}
