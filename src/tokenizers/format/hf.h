#ifndef TNK_TOKENIZERS_FORMAT_HF_H
#define TNK_TOKENIZERS_FORMAT_HF_H

#include "tokenizers/format/format.h"
#include "tokenizers/format/json.h"

/* A tokenizer.json while it is read. */
typedef struct {
  tnk_tokenizer_t *tok;
  tnk__jread_t json;
  tnk_tokenizer_error_t *error;
  const uint8_t *added;  /* where the values begin; NULL without them */
  const uint8_t *around; /* post_processor */
  tnk__buf_t text;       /* for one name at a time */
} tnk__hf_t;

/*
 * hf_read.c: what all of them use.
 *
 * Say that the file is no JSON, or not of the expected kind, at json.p.
 */
int tnk__hf_malformed(tnk__hf_t *hf, const char *place);
int tnk__hf_unsupported(tnk__hf_t *hf, const char *place, const char *what);
/* Read a string with its escapes resolved, which is in hf->text until the next
 * call. */
int tnk__hf_name(tnk__hf_t *hf, const char *place);
/* Read a string that is compared with words of ours: without a NUL, at which a
 * comparison would end. */
int tnk__hf_word(tnk__hf_t *hf, const char *place);
/* Take the value at json.p. 1: it is one of false, null, "" or 0, in other
 * words switched off. */
int tnk__hf_off(tnk__hf_t *hf);
/* Turn a token's name, which has one character of the byte alphabet for each
 * byte, into these bytes. Returns their number, or -1 when a character is not
 * of the alphabet. `out` may be `name`. */
int64_t tnk__hf_bytes(const uint8_t *name, size_t n, uint8_t *out);

/* hf_parts.c: what stands before and behind the model. */
int tnk__hf_normalizer(tnk__hf_t *hf);
int tnk__hf_pre_tokenizer(tnk__hf_t *hf);
int tnk__hf_decoder(tnk__hf_t *hf);
/* hf_template.c */
int tnk__hf_post_processor(tnk__hf_t *hf);
/* hf_model.c */
int tnk__hf_model(tnk__hf_t *hf);
/* hf_added.c; after the model. */
int tnk__hf_added(tnk__hf_t *hf);

#endif
