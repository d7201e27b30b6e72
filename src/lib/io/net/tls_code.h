/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_TLS_CODE_H
#define TNK_LIB_IO_NET_TLS_CODE_H

/* Convert a code of mbedTLS: TNK_ENOMEM, or `otherwise` for any other code. */
int tnk__tls_code(int cause, int otherwise);

#endif
