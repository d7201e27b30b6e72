# SPDX-License-Identifier: MIT
"""A run with a ledger, for run_kills.py.

usage: resumes.py DIRECTORY
"""
import sys

import tnk

STEPS, LIMIT = 8, 120
service = tnk.ServiceClient()
ledger = tnk.Ledger.open(service, sys.argv[1], run="kills", every_steps=1).result(LIMIT)
if ledger.last() is None:
    training, first = service.create_lora_training_client("tnk/byte-lm", 8, seed=5).result(LIMIT), 0
else:
    training, first = ledger.resume().result(LIMIT), ledger.resumed()["batch"]
print("begins", first, flush=True)
datum = tnk.Datum(tnk.ModelInput.from_ints(list(b"hell")), {"target_tokens": list(b"ello")})
for step in range(first, STEPS):
    passed = training.forward_backward([datum])
    training.optim_step(tnk.AdamParams(learning_rate=1e-2)).result(LIMIT)
    print("loss", step, repr(passed.result(LIMIT).metrics["loss:sum"]), flush=True)
    saved = ledger.save(training, batch=step + 1, is_final=step + 1 == STEPS).result(LIMIT)
    print("saved", step + 1, flush=True)
print("final", (ledger.last() if first == STEPS else saved)["state_path"], flush=True)
