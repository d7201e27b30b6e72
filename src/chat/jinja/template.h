#ifndef TNK_CHAT_JINJA_TEMPLATE_H
#define TNK_CHAT_JINJA_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"
#include "chat/value/why.h"
#include "lib/base/buf.h"
#include "tnk/common.h"

/*
 * Chat templates: the part of Jinja that they are written in, with the
 * semantics of the reference (README.md says what that is and where this is
 * narrower). A template is compiled once, never changes after that, and may be
 * rendered from several threads at once.
 */
typedef struct tnk__template tnk__template_t;

/* Compile a text of UTF-8. TNK_EINVAL for what is no template,
 * TNK_EUNSUPPORTED for what this does not know, by name and line; TNK_ENOMEM;
 * TNK_ETOOBIG. */
int tnk__template_compile(tnk__template_t **out, const tnk_allocator_t *alloc,
                          const char *text, size_t n, tnk__why_t *why);
void tnk__template_free(tnk__template_t *tpl);

/* What a template may see and use. Zeros are the defaults. */
typedef struct {
  /* Local time, in seconds as if it were UTC; NULL: a template that asks for it
   * is refused. */
  int64_t (*now_s)(void *user);
  void *user;
  uint64_t max_work;  /* units of cost.h; 0: TNK__COST_MAX */
  uint64_t *used;     /* gets the units that were used; NULL: not wanted */
  size_t max_output;  /* bytes; 0: 64 MiB */
  unsigned max_depth; /* nested nodes, calls included; 0: 300 */
  size_t max_memory;  /* bytes of the heap; 0: what the heap allows */
} tnk__template_env_t;

/* Bytes of the output that a {% generation %} block has made. */
typedef struct {
  size_t start, end;
} tnk__template_span_t;

/*
 * Append the text that a template makes of `variables`, a dict.
 *
 * @param env    NULL: all defaults.
 * @param spans  Gets a tnk__template_span_t for each generation block, counted
 *               from where the text begins; NULL: nobody wants them.
 * @return TNK_OK; TNK_EINVAL when the template fails or says no, TNK_ETOOBIG
 *   at a limit, TNK_EUNSUPPORTED for what is not known here, TNK_ENOMEM. Then
 *   `out` is as long as it was.
 */
int tnk__template_render(const tnk__template_t *tpl, tnk__heap_t *heap,
                         tnk__value_t variables, const tnk__template_env_t *env,
                         tnk__buf_t *out, tnk__buf_t *spans, tnk__why_t *why);

#endif
