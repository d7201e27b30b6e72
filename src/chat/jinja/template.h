/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_TEMPLATE_H
#define TNK_CHAT_JINJA_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "chat/value/value.h"
#include "lib/base/buf.h"
#include "tnk/common.h"

/*
 * Chat templates: the part of Jinja that they use, with the semantics of the
 * reference. README.md describes the reference and the differences. A template
 * is compiled once and never changes after that. Several threads may render it
 * at once.
 */
typedef struct tnk__template tnk__template_t;

/* Compile a template in UTF-8. TNK_EINVAL: malformed. TNK_EUNSUPPORTED: a
 * feature is not supported; the error has its name and line. Also TNK_ENOMEM
 * and TNK_ETOOBIG. */
int tnk__template_compile(tnk__template_t **out, const tnk_allocator_t *alloc,
                          const char *text, size_t n, tnk__why_t *why);
void tnk__template_free(tnk__template_t *tpl);

/* Environment and limits of a rendering. Zeros select the defaults. */
typedef struct {
  /* Local time in seconds, as if it were UTC. NULL: a template that needs the
   * time fails. */
  int64_t (*now_s)(void *user);
  void *user;
  /* CPU time of the thread in nanoseconds. NULL: CPU time is not limited. */
  uint64_t (*cpu_ns)(void);
  /* Called before the first work, and then once for each TNK__COST_CHECK. If it
   * returns nonzero, the rendering fails with TNK_ECANCELED. May be NULL. */
  int (*is_canceled)(void *user);
  uint64_t max_cpu_ns; /* 0: TNK__COST_MAX_CPU_NS */
  uint64_t max_work;   /* units of cost.h; 0: TNK__COST_MAX */
  uint64_t *used;      /* receives the used units; may be NULL */
  size_t max_output;   /* bytes; 0: 64 MiB */
  unsigned max_depth;  /* maximum nesting of nodes, including calls; 0: 300 */
  size_t max_memory;   /* bytes of the heap; 0: only the heap's own limit */
} tnk__template_env_t;

/* The range of the output of a {% generation %} block, in bytes. */
typedef struct {
  size_t start, end;
} tnk__template_span_t;

/*
 * Append the output of a template with `variables`, a dict.
 *
 * @param env    NULL: all defaults.
 * @param spans  Receives a tnk__template_span_t for each generation block.
 *               Offsets count from the start of the output. May be NULL.
 * @return TNK_OK; TNK_EINVAL if the template fails or raises an error;
 *   TNK_ETOOBIG at a limit; TNK_EUNSUPPORTED for unsupported features;
 *   TNK_ECANCELED; TNK_ENOMEM. On failure `out` keeps its previous length.
 */
int tnk__template_render(const tnk__template_t *tpl, tnk__heap_t *heap,
                         tnk__value_t variables, const tnk__template_env_t *env,
                         tnk__buf_t *out, tnk__buf_t *spans, tnk__why_t *why);

#endif
