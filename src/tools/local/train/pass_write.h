#ifndef TNK_TOOLS_LOCAL_TRAIN_PASS_WRITE_H
#define TNK_TOOLS_LOCAL_TRAIN_PASS_WRITE_H

#include "tools/local/train/model.h"

/* Append the result as a ForwardBackwardOutput; errors are kept in the
 * buffer. */
void local_pass_write(tnk__buf_t *out, const local_pass_t *pass);

#endif
