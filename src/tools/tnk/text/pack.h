/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_PACK_H
#define TNK_TOOLS_TNK_TEXT_PACK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/base/arena.h"
#include "lib/base/system.h"
#include "tnk/chat.h"

/*
 * Packed data: the token ids and weights of many examples in one file. An
 * example is read from the file when it is trained, so the memory does not
 * depend on the size of the file.
 *
 *   header    cli_pack_head_t
 *   examples  of each one the ids as int32, then the weights as float
 *   index     of each example a cli_pack_entry_t
 *
 * Numbers have the byte order of the machine that wrote the file. The header,
 * the index and each example have a checksum. An example is checked each time
 * it is read.
 */
#define CLI_PACK_MAGIC "tnkpack"
#define CLI_PACK_ORDER UINT32_C(0x01020304)
enum { CLI_PACK_VERSION = 1 };

typedef struct {
  char magic[8];
  uint32_t order; /* CLI_PACK_ORDER */
  uint32_t version;
  uint64_t n_examples;
  uint64_t n_tokens; /* ids of all examples */
  uint64_t longest;  /* ids of the longest one */
  uint64_t digest;   /* of the lengths, ids and weights, as of chats */
  uint64_t vocabulary;
  uint64_t n_vocab; /* all ids are below it */
  uint64_t n_cut;   /* examples that --max-length has cut */
  uint64_t n_left_out;
  double weight; /* sum of the weights of all targets */
  uint64_t reserved[4];
  uint32_t index_sum; /* CRC-32 of the index */
  uint32_t head_sum;  /* CRC-32 of the bytes before this member */
} cli_pack_head_t;

typedef struct {
  uint64_t offset; /* in the file */
  uint32_t n;      /* ids */
  uint32_t sum;    /* CRC-32 of the number, n, the ids and the weights */
} cli_pack_entry_t;

/* The identity of a vocabulary: of the bytes of its ids below `n_vocab`. */
uint64_t cli_pack_vocabulary(const tnk_chat_tokenizer_t *tokenizer,
                             size_t n_vocab);

/* ---- Writing ---- */

/* A file that is written. Its name appears with its whole contents. */
typedef struct {
  const char *path;
  char *temporary;
  FILE *file;
  FILE *index; /* without a name */
  cli_pack_head_t head;
} cli_pack_writer_t;

/* All functions return TNK_OK, TNK_EFILE with errno set, or TNK_ENOMEM. End or
 * drop the writer in any case. */
int cli_pack_begin(cli_pack_writer_t *writer, const char *path);
/* Add an example of at least two ids, which the caller has checked. */
int cli_pack_add(cli_pack_writer_t *writer, const int32_t *ids,
                 const float *weights, size_t n);
int cli_pack_end(cli_pack_writer_t *writer);
/* Remove the temporary file. */
void cli_pack_drop(cli_pack_writer_t *writer);

/* ---- Reading ---- */

/* An open file, whose contents are not trusted. */
typedef struct {
  char *name;
  int fd;
  cli_pack_head_t head;
  uint64_t index;            /* its offset */
  cli_pack_entry_t *entries; /* of cli_pack_keep_index(), or NULL */
  off_t size;                /* of the file, and its time, when it was opened */
  tnk__system_time_t modified;
} cli_pack_t;

/* Whether the file begins as packed data. Pipes are not read. */
int cli_pack_is(const char *path);
/* Open a file and check its header and index. Returns TNK_OK; TNK_ENOMEM; or
 * TNK_EFILE with the reason in `why`, which names the file. Close it in any
 * case. */
int cli_pack_open(cli_pack_t *pack, const char *path, char *why, size_t n_why);
/* The same for a descriptor, which the pack then owns. */
int cli_pack_open_fd(cli_pack_t *pack, int fd, const char *name, char *why,
                     size_t n_why);
void cli_pack_close(cli_pack_t *pack);
/* Keep the index in memory, so that an example is read in one call. It stays in
 * the file if that fails. */
void cli_pack_keep_index(cli_pack_t *pack);
/* The number of ids of example `i`; 0 if the file cannot be read any more,
 * which cli_pack_read() reports. */
size_t cli_pack_length(const cli_pack_t *pack, uint64_t i);
/* Those of all examples, [n_examples]. Returns 0 if they cannot be read. */
int cli_pack_lengths(const cli_pack_t *pack, uint32_t *out);
/* Read an example into memory of the arena, which the caller may change.
 * Returns as cli_pack_open(). */
int cli_pack_read(const cli_pack_t *pack, uint64_t i, tnk__arena_t *arena,
                  int32_t **ids, float **weights, size_t *n, char *why,
                  size_t n_why);

#endif
