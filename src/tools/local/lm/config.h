#ifndef TNK_TOOLS_LOCAL_LM_CONFIG_H
#define TNK_TOOLS_LOCAL_LM_CONFIG_H

#include "tools/local/lm/file.h"

/* The config file of a checkpoint: PEFT's fields for programs that read
 * adapters, and the fields for resuming under "tnk". */
typedef struct {
  tnk__lm_config_t config;
  uint64_t n_steps;
  int has_optimizer;
  tnk__lm_sum_t adapter;
  tnk__lm_sum_t optimizer; /* valid with has_optimizer */
} tnk__lm_saved_config_t;

/* Write the file; errors are kept in buf->err. */
void tnk__lm_config_write(const tnk__lm_saved_config_t *saved, tnk__buf_t *buf);
int tnk__lm_config_read(tnk__lm_saved_config_t *out, const char *dir,
                        const tnk_allocator_t *alloc, tnk__lm_why_t *why);

#endif
