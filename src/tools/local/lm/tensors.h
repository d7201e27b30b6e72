#ifndef TNK_TOOLS_LOCAL_LM_TENSORS_H
#define TNK_TOOLS_LOCAL_LM_TENSORS_H

#include "lib/base/buf.h"
#include "tools/local/lm/state.h"

/*
 * The parameters of a model and their moments as safetensors files: eight bytes
 * of header length, the JSON header, then float32 data. Factors have the names
 * and the orientation of a PEFT adapter: lora_A has `rank` rows, lora_B has one
 * row per output. Padding is not written.
 */

/* Append a file with the arrays `first` .. `first + count - 1` of lm->param.
 * Errors are kept in buf->err. */
void tnk__lm_tensors_write(const tnk__lm_t *lm, size_t first, size_t count,
                           tnk__buf_t *buf);
/* Parse such a file into param[first] ..., n_params floats each, with zeroed
 * padding. `name` is the name of the file. TNK_EPROTO, TNK_ENOMEM. */
int tnk__lm_tensors_read(const tnk__lm_t *lm, size_t first, size_t count,
                         const uint8_t *data, size_t n, float *const *param,
                         const char *name, tnk__lm_why_t *why);

#endif
