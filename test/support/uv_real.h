/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_UV_REAL_H
#define TNK_TEST_SUPPORT_UV_REAL_H

#include <uv.h>

/*
 * Forced into the test support of programs whose linker wraps libuv's calls
 * (-Wl,--wrap=uv_write, see task/test_uv_faults.c): only the library meets the
 * faults, the scripted server keeps calling libuv itself. The names are the
 * linker's.
 */
int __real_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc_cb,
                         uv_read_cb read_cb);
int __real_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *handle,
                          const struct sockaddr *addr, uv_connect_cb cb);
int __real_uv_tcp_init_ex(uv_loop_t *loop, uv_tcp_t *handle, unsigned flags);
int __real_uv_try_write(uv_stream_t *handle, const uv_buf_t bufs[],
                        unsigned int nbufs);
int __real_uv_write(uv_write_t *req, uv_stream_t *handle, const uv_buf_t bufs[],
                    unsigned int nbufs, uv_write_cb cb);

#define uv_read_start __real_uv_read_start
#define uv_tcp_connect __real_uv_tcp_connect
#define uv_tcp_init_ex __real_uv_tcp_init_ex
#define uv_try_write __real_uv_try_write
#define uv_write __real_uv_write

#endif
