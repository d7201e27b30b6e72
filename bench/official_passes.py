"""The official client doing what bench_passes does; prints the same JSON."""
import json
import os
import resource
import sys
import time

import numpy as np
import tinker
from tinker import types

n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
length = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
loss = sys.argv[3] if len(sys.argv) > 3 else "cross_entropy"


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_kib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


names = ["weights"] if loss == "cross_entropy" else ["logprobs", "advantages"]
tokens = (np.arange(n * length, dtype=np.int64) * 7919) % 150000
values = (1.0 / (1 + np.arange(n * length) % 13)).astype(np.float32)
data = []
for i in range(n):
    part = slice(i * length, (i + 1) * length)
    inputs = {"target_tokens": types.TensorData.from_numpy(tokens[part])}
    for name in names:
        inputs[name] = types.TensorData.from_numpy(values[part])
    data.append(types.Datum(model_input=types.ModelInput.from_ints(tokens[part].tolist()),
                            loss_fn_inputs=inputs))
service = tinker.ServiceClient()
training = service.create_lora_training_client(base_model="tnk/byte-lm").result()
before = rss_kib()
start, used = time.perf_counter(), cpu()
training.forward_backward(data, loss).result()
wall, used = time.perf_counter() - start, cpu() - used
with open("/proc/self/status") as file:
    peak = int(next(line for line in file if line.startswith("VmHWM:")).split()[1])
print(json.dumps({"tokens": n * length, "loss": loss, "cpu_s": round(used, 4), "sent_s": round(wall, 4),
                  "peak_mib": round((peak - before) / 1024, 1)}), flush=True)
os._exit(0)
