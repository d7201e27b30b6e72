#ifndef TNK_TOOLS_LOCAL_LM_TENSORS_H
#define TNK_TOOLS_LOCAL_LM_TENSORS_H

#include "lib/base/buf.h"
#include "tools/local/lm/state.h"

/*
 * The parameters of a model and their moments as safetensors files: eight
 * bytes of header length, the header in JSON, then float32 data. Factors have
 * the names and the orientation of a PEFT adapter: lora_A has `rank` rows,
 * lora_B has one row an output. Padding is not written.
 */

/* Append a file with the arrays `first` .. `first + count - 1` of lm->param.
 * The outcome is in buf->err. */
void tnk__lm_tensors_write(const tnk__lm_t *lm, size_t first, size_t count,
                           tnk__buf_t *buf);
/* Read such a file into param[first] ..., n_params floats each, of which the
 * padding must be 0. `name` is that of the file. TNK_EPROTO, TNK_ENOMEM. */
int tnk__lm_tensors_read(const tnk__lm_t *lm, size_t first, size_t count,
                         const uint8_t *data, size_t n, float *const *param,
                         const char *name, tnk__lm_why_t *why);

#endif
