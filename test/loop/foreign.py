# SPDX-License-Identifier: MIT
"""foreign.c for asyncio: the same steps, through ctypes.

usage: foreign.py LIBTNK SECONDS LAYOUT ...

LAYOUT is what `foreign layout` prints: size and offset of keep_loop_alive in
tnk_service_options_t, size and offset of base_model in tnk_sampling_options_t.
"""
import asyncio
import ctypes
import sys

TNK = ctypes.CDLL(sys.argv[1])
UV = TNK  # a library's symbols are looked up in what it needs, too
P = ctypes.c_void_p
NOWAIT, PENDING, YES = 2, 0, 1
for name in ("tnk_service_create_sampling", "tnk_promise_sampling", "tnk_sampling_sample"):
    getattr(TNK, name).restype = P
TNK.tnk_promise_text.restype = ctypes.c_char_p
UV.uv_default_loop.restype = P


def options(name, size, offset, member):
    """A struct of the library with one member set."""
    memory = ctypes.create_string_buffer(size)
    assert TNK.tnk_init(name.encode(), memory, ctypes.c_size_t(size)) == 0
    type(member).from_buffer(memory, offset).value = member.value
    return memory


class Loop:
    def __init__(self):
        self.uv = P(UV.uv_default_loop())
        self.asyncio = asyncio.get_running_loop()
        self.timer = None
        self.asyncio.add_reader(UV.uv_backend_fd(self.uv), self.turn)

    def turn(self):
        if self.timer:
            self.timer.cancel()
            self.timer = None
        UV.uv_run(self.uv, NOWAIT)
        timeout = UV.uv_backend_timeout(self.uv)
        if UV.uv_loop_alive(self.uv) and timeout >= 0:
            self.timer = self.asyncio.call_later(timeout / 1000, self.turn)

    async def settle(self, promise):
        self.turn()
        while TNK.tnk_promise_state(promise) == PENDING:
            await asyncio.sleep(0.002)
        assert TNK.tnk_promise_status(promise) == 0, TNK.tnk_promise_text(promise)
        return promise


async def main():
    loop = Loop()
    service = P()
    layout = [int(number) for number in sys.argv[3:]]
    how = options("tnk_service_options_t", *layout[:2], ctypes.c_int(YES))
    assert TNK.tnk_service_open(ctypes.byref(service), loop.uv, how, None, 0) == 0
    model = ctypes.create_string_buffer(b"tnk/byte-lm")
    weights = options("tnk_sampling_options_t", *layout[2:],
                      P(ctypes.addressof(model)))
    made = await loop.settle(P(TNK.tnk_service_create_sampling(service, weights)))
    await asyncio.sleep(float(sys.argv[2]))
    ids = (ctypes.c_int32 * 2)(72, 105)
    prompt = (ctypes.c_size_t * 4)(ctypes.addressof(ids), 2, 0, 0)
    sampling = P(TNK.tnk_promise_sampling(made))
    sample = await loop.settle(P(TNK.tnk_sampling_sample(sampling, prompt, None, None)))
    TNK.tnk_promise_unref(sample)
    TNK.tnk_promise_unref(made)
    TNK.tnk_service_close(service, None, None)
    while UV.uv_loop_alive(loop.uv):
        loop.turn()
        await asyncio.sleep(0.002)
    loop.asyncio.remove_reader(UV.uv_backend_fd(loop.uv))


asyncio.run(main())
