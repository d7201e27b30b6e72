#ifndef TNK_LIB_IO_NET_TLS_CODE_H
#define TNK_LIB_IO_NET_TLS_CODE_H

/* The code of ours for mbedTLS's: TNK_ENOMEM, or `otherwise`. */
int tnk__tls_code(int cause, int otherwise);

#endif
