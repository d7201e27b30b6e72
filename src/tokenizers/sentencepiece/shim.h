#ifndef TNK_TOKENIZERS_SENTENCEPIECE_SHIM_H
#define TNK_TOKENIZERS_SENTENCEPIECE_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * SentencePiece from C. The library is C++; no exception leaves this seam, and
 * ids are checked before they go in. All functions but new and free are const
 * and may be called by several threads at once. Memory inside comes from the
 * C++ runtime.
 */
typedef struct tnk__sp tnk__sp_t;

typedef enum {
  TNK__SP_NORMAL,
  TNK__SP_UNKNOWN,
  TNK__SP_CONTROL,
  TNK__SP_BYTE
} tnk__sp_kind_t;

/* Where the C++ side may be: linked in, or in a module of its own, see
 * module.c. Every model begins with a pointer to this table. */
typedef struct {
  int (*create)(tnk__sp_t **out, const void *data, size_t n, char *why,
                size_t why_size);
  void (*destroy)(tnk__sp_t *sp);
  int32_t (*size)(const tnk__sp_t *sp);
  int32_t (*bos)(const tnk__sp_t *sp);
  int32_t (*eos)(const tnk__sp_t *sp);
  const char *(*piece)(const tnk__sp_t *sp, int32_t id, size_t *n,
                       tnk__sp_kind_t *kind);
  int (*encode)(const tnk__sp_t *sp, const char *text, size_t n,
                int with_places,
                int (*put)(void *user, int32_t id, size_t begin, size_t end),
                void *user);
  int (*decode)(const tnk__sp_t *sp, const int32_t *ids, size_t n,
                int (*put)(void *user, const char *text, size_t n), void *user);
} tnk__sp_calls_t;

/* The table of shim.cc. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const tnk__sp_calls_t tnk__sp_shim;

/* The table, wherever it is; NULL with a reason when there is none. */
const tnk__sp_calls_t *tnk__sp_open(char *why, size_t why_size);

/* Open a model. TNK_OK, TNK_ENOMEM, TNK_EUNSUPPORTED without the C++ side, or
 * TNK_EPROTO with the library's words in `why`. */
int tnk__sp_new(tnk__sp_t **out, const void *data, size_t n, char *why,
                size_t why_size);
void tnk__sp_free(tnk__sp_t *sp);

int32_t tnk__sp_size(const tnk__sp_t *sp);
/* The id that begins, and that ends a text; -1 when the model has none. */
int32_t tnk__sp_bos(const tnk__sp_t *sp);
int32_t tnk__sp_eos(const tnk__sp_t *sp);
/* The name of a piece; belongs to the model. NULL when something failed. */
const char *tnk__sp_piece(const tnk__sp_t *sp, int32_t id, size_t *n,
                          tnk__sp_kind_t *kind);

/* Encode a text: `put` is called for each piece with its place in the text; it
 * returns a negative code to end the call, which then returns it. */
int tnk__sp_encode(const tnk__sp_t *sp, const char *text, size_t n,
                   int with_places,
                   int (*put)(void *user, int32_t id, size_t begin, size_t end),
                   void *user);
/* Decode ids: `put` is called once, with the text. */
int tnk__sp_decode(const tnk__sp_t *sp, const int32_t *ids, size_t n,
                   int (*put)(void *user, const char *text, size_t n),
                   void *user);

#ifdef __cplusplus
}
#endif

#endif
