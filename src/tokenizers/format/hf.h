/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_FORMAT_HF_H
#define TNK_TOKENIZERS_FORMAT_HF_H

#include "tokenizers/format/format.h"
#include "tokenizers/format/json.h"

/* State of reading a tokenizer.json. */
typedef struct {
  tnk_tokenizer_t *tok;
  tnk__jread_t json;
  tnk_tokenizer_error_t *error;
  const uint8_t *added;  /* start of the value; NULL if absent */
  const uint8_t *around; /* post_processor */
  const uint8_t *model;  /* set if it comes before the pre_tokenizer */
  tnk__step_t split;     /* text at which the pre_tokenizer splits, if any */
  int has_names;         /* the decoder is for names of characters */
  tnk__buf_t text;       /* buffer for one name */
} tnk__hf_t;

/*
 * hf.c: shared by all files.
 *
 * Report malformed or unexpected JSON at json.p.
 */
int tnk__hf_malformed(tnk__hf_t *hf, const char *place);
int tnk__hf_unsupported(tnk__hf_t *hf, const char *place, const char *what);
/* Read a string and resolve its escapes. The result is in hf->text until the
 * next call. */
int tnk__hf_name(tnk__hf_t *hf, const char *place);
/* Read a string to be compared with known words. A NUL in it is an error, as it
 * would end the comparison early. */
int tnk__hf_word(tnk__hf_t *hf, const char *place);
/* Read the value at json.p. Returns 1 if it is false, null, "" or 0, which all
 * mean that a feature is off. */
int tnk__hf_off(tnk__hf_t *hf);
/* Convert the name of a token to bytes. Each character of the byte alphabet is
 * one byte. Returns the number of bytes, or -1 if a character is not in the
 * alphabet. `out` may be `name`. */
int64_t tnk__hf_bytes(const uint8_t *name, size_t n, uint8_t *out);

/* Convert a name to the bytes that the vocabulary has. A name with a character
 * outside the byte alphabet is a literal token: its bytes are the name, and
 * *flags is TNK__TOKEN_LITERAL. `out` needs room for n bytes. Returns their
 * number. */
size_t tnk__hf_stored(const tnk__hf_t *hf, const uint8_t *name, size_t n,
                      uint8_t *out, unsigned *flags);

/* hf_steps.c. tnk__hf_check_steps() checks what depends on several of them. */
int tnk__hf_normalizer(tnk__hf_t *hf);
int tnk__hf_pre_tokenizer(tnk__hf_t *hf);
int tnk__hf_decoder(tnk__hf_t *hf);
int tnk__hf_check_steps(tnk__hf_t *hf);
/* hf_template.c */
int tnk__hf_post_processor(tnk__hf_t *hf);
/* hf_model.c */
int tnk__hf_model(tnk__hf_t *hf);
/* hf_added.c; call it after the model. */
int tnk__hf_added(tnk__hf_t *hf);

#endif
