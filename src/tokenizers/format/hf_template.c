/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <stdio.h>
#include <string.h>

/*
 * The post-processor, which adds tokens around a text. ByteLevel only changes
 * offsets. A TemplateProcessing has a template for a single text, which is used
 * here.
 */
#define MAX_NESTING 4

/* The ids of a special token of a template. */
typedef struct {
  tnk__jread_text_t name;
  int32_t ids[TNK__MAX_AROUND];
  unsigned n;
} special_t;

typedef struct {
  tnk__hf_t *hf;
  /* `single` names the tokens, and `special_tokens` has their ids. Either may
   * come first. */
  tnk__jread_text_t names[2 * TNK__MAX_AROUND];
  unsigned n_names;
  unsigned sequence_at; /* number of names before the text */
  int has_sequence;
  special_t specials[2 * TNK__MAX_AROUND];
  unsigned n_specials;
} template_t;

static int malformed(template_t *t) {
  return tnk__hf_malformed(t->hf, "post_processor");
}

/* {"id": X, "type_id": 0} */
static int read_id(template_t *t, tnk__jread_text_t *id) {
  tnk__jread_t *json = &t->hf->json;
  tnk__jread_text_t key;
  size_t n = 0;
  int more;

  id->p = NULL;
  if (tnk__jread_take(json, '{') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_key(json, &n, &key)) > 0)
    if ((tnk__jread_is(&key, "id") ? tnk__jread_text(json, id)
                                   : tnk__jread_skip(json)) < 0)
      return malformed(t);
  return more < 0 || id->p == NULL ? malformed(t) : TNK_OK;
}

/* {"SpecialToken": {...}} or {"Sequence": {...}} */
static int read_piece(template_t *t) {
  tnk__jread_t *json = &t->hf->json;
  tnk__jread_text_t key, id;
  size_t n = 0;
  int err;

  if (tnk__jread_take(json, '{') < 0 ||
      tnk__jread_next_key(json, &n, &key) <= 0)
    return malformed(t);
  err = read_id(t, &id);
  if (err < 0)
    return err;
  if (tnk__jread_next_key(json, &n, &key) != 0)
    return malformed(t);
  if (tnk__jread_is(&key, "Sequence")) {
    if (t->has_sequence || !tnk__jread_is(&id, "A"))
      return tnk__hf_unsupported(t->hf, "post_processor", "with several texts");
    t->has_sequence = 1;
    t->sequence_at = t->n_names;
    return TNK_OK;
  }
  if (t->n_names == 2 * TNK__MAX_AROUND)
    return tnk__hf_unsupported(t->hf, "post_processor", "with so many tokens");
  t->names[t->n_names++] = id;
  return TNK_OK;
}

static int read_single(template_t *t) {
  size_t n = 0;
  int more;

  if (tnk__jread_take(&t->hf->json, '[') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_item(&t->hf->json, &n)) > 0) {
    int err = read_piece(t);

    if (err < 0)
      return err;
  }
  return more < 0 ? malformed(t) : TNK_OK;
}

static int read_ids(template_t *t, special_t *special) {
  tnk__jread_t *json = &t->hf->json;
  size_t n = 0;
  int more;

  if (tnk__jread_take(json, '[') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_item(json, &n)) > 0) {
    uint32_t id;

    if (tnk__jread_uint(json, &id) < 0 ||
        !tnk__vocab_has(&t->hf->tok->vocab, id))
      return malformed(t);
    if (special->n == TNK__MAX_AROUND)
      return tnk__hf_unsupported(t->hf, "post_processor",
                                 "with so many tokens");
    special->ids[special->n++] = (int32_t)id;
  }
  return more < 0 ? malformed(t) : TNK_OK;
}

static int read_specials(template_t *t) {
  tnk__jread_t *json = &t->hf->json;
  tnk__jread_text_t name, key;
  size_t n = 0;
  int more, err;

  if (tnk__jread_take(json, '{') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_key(json, &n, &name)) > 0) {
    special_t *special = &t->specials[t->n_specials];
    size_t m = 0;

    if (t->n_specials == 2 * TNK__MAX_AROUND)
      return tnk__hf_unsupported(t->hf, "post_processor",
                                 "with so many tokens");
    special->name = name;
    special->n = 0;
    t->n_specials++;
    if (tnk__jread_take(json, '{') < 0)
      return malformed(t);
    while ((more = tnk__jread_next_key(json, &m, &key)) > 0) {
      err = !tnk__jread_is(&key, "ids")
                ? (tnk__jread_skip(json) < 0 ? malformed(t) : TNK_OK)
                : read_ids(t, special);
      if (err < 0)
        return err;
    }
    if (more < 0)
      return malformed(t);
  }
  return more < 0 ? malformed(t) : TNK_OK;
}

static int add_around(template_t *t, unsigned i) {
  tnk_tokenizer_t *tok = t->hf->tok;
  const special_t *special = NULL;
  int32_t *ids = i < t->sequence_at ? tok->before : tok->behind;
  unsigned *n = i < t->sequence_at ? &tok->n_before : &tok->n_behind;

  for (unsigned j = 0; j < t->n_specials; j++)
    if (t->specials[j].name.n == t->names[i].n &&
        memcmp(t->specials[j].name.p, t->names[i].p, t->names[i].n) == 0)
      special = &t->specials[j];
  if (special == NULL)
    return malformed(t);
  if (*n + special->n > TNK__MAX_AROUND)
    return tnk__hf_unsupported(t->hf, "post_processor", "with so many tokens");
  memcpy(ids + *n, special->ids, special->n * sizeof(*ids));
  *n += special->n;
  return TNK_OK;
}

static int read_processor(template_t *t, unsigned depth);

static int read_member(template_t *t, const tnk__jread_text_t *key,
                       unsigned depth) {
  tnk__jread_t *json = &t->hf->json;
  size_t n = 0;
  int more;

  if (tnk__jread_is(key, "single"))
    return read_single(t);
  if (tnk__jread_is(key, "special_tokens"))
    return read_specials(t);
  if (!tnk__jread_is(key, "processors"))
    return tnk__jread_skip(json) < 0 ? malformed(t) : TNK_OK;
  if (tnk__jread_take(json, '[') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_item(json, &n)) > 0) {
    int err = read_processor(t, depth + 1);

    if (err < 0)
      return err;
  }
  return more < 0 ? malformed(t) : TNK_OK;
}

static int read_processor(template_t *t, unsigned depth) {
  tnk__hf_t *hf = t->hf;
  tnk__jread_text_t key, type = {NULL, 0, 0};
  int more, err, had_sequence = t->has_sequence;
  char name[48];
  size_t n = 0;

  if (depth > MAX_NESTING || tnk__jread_take(&hf->json, '{') < 0)
    return malformed(t);
  while ((more = tnk__jread_next_key(&hf->json, &n, &key)) > 0) {
    if (!tnk__jread_is(&key, "type"))
      err = read_member(t, &key, depth);
    else
      err = tnk__jread_text(&hf->json, &type) < 0 ? malformed(t) : TNK_OK;
    if (err < 0)
      return err;
  }
  if (more < 0 || type.p == NULL)
    return malformed(t);
  if (tnk__jread_is(&type, "ByteLevel") || tnk__jread_is(&type, "Sequence"))
    return TNK_OK;
  if (!tnk__jread_is(&type, "TemplateProcessing")) {
    (void)snprintf(name, sizeof(name), "%.*s", (int)(type.n < 40 ? type.n : 40),
                   (const char *)type.p);
    return tnk__hf_unsupported(hf, "post_processor", name);
  }
  /* A template without the text would drop it. */
  if (had_sequence || !t->has_sequence)
    return tnk__hf_unsupported(hf, "post_processor", "without the text");
  return TNK_OK;
}

int tnk__hf_post_processor(tnk__hf_t *hf) {
  template_t t;
  int err = TNK_OK;

  memset(&t, 0, sizeof(t));
  t.hf = hf;
  if (tnk__jread_null(&hf->json))
    return TNK_OK;
  err = read_processor(&t, 0);
  if (err == TNK_OK && t.n_names > 0 && !t.has_sequence)
    err = tnk__hf_unsupported(hf, "post_processor", "without the text");
  for (unsigned i = 0; i < t.n_names && err == TNK_OK; i++)
    err = add_around(&t, i);
  return err;
}
