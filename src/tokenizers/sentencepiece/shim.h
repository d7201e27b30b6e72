/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_SENTENCEPIECE_SHIM_H
#define TNK_TOKENIZERS_SENTENCEPIECE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * C interface of SentencePiece, which is a C++ library. No exception leaves
 * this interface, and ids are checked before they are passed on. All functions
 * except new and free are const, and several threads may call them at once. The
 * C++ runtime allocates the library's memory.
 */
typedef struct tnk__sp tnk__sp_t;

typedef enum {
  TNK__SP_NORMAL,
  TNK__SP_UNKNOWN,
  TNK__SP_CONTROL,
  TNK__SP_BYTE
} tnk__sp_kind_t;

/* Functions of the C++ side, which is linked in or in a separate module; see
 * module.c. Every model starts with a pointer to this table. */
typedef struct {
  /* Open a model. Returns TNK_OK, TNK_ENOMEM, or TNK_EPROTO with the library's
   * message in `why`. */
  int (*create)(tnk__sp_t **out, const void *data, size_t n, char *why,
                size_t why_size);
  void (*destroy)(tnk__sp_t *sp);
  int32_t (*size)(const tnk__sp_t *sp);
  /* The ids of the start and the end of a text. -1: none. */
  int32_t (*bos)(const tnk__sp_t *sp);
  int32_t (*eos)(const tnk__sp_t *sp);
  /* The name of a piece; the model owns it. NULL on failure. */
  const char *(*piece)(const tnk__sp_t *sp, int32_t id, size_t *n,
                       tnk__sp_kind_t *kind);
  /* Encode a text. Calls `put` for each piece with its offsets. If `put`
   * returns a negative code, the call ends and returns it. */
  int (*encode)(const tnk__sp_t *sp, const char *text, size_t n,
                int with_places,
                int (*put)(void *user, int32_t id, size_t begin, size_t end),
                void *user);
  /* Decode ids. Calls `put` once, with the text. */
  int (*decode)(const tnk__sp_t *sp, const int32_t *ids, size_t n,
                int (*put)(void *user, const char *text, size_t n), void *user);
} tnk__sp_calls_t;

/* The table of shim.cc. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const tnk__sp_calls_t tnk__sp_shim;

/* Get the table. NULL: not available, with the reason in `why`. */
const tnk__sp_calls_t *tnk__sp_open(char *why, size_t why_size);

#ifdef __cplusplus
}
#endif

#endif
