# SPDX-License-Identifier: MIT
"""Goes on with a run, or begins it, as the recipes of the Tinker cookbook do.

    python3 cookbook.py LOG_DIR STEPS

Prints what it went on from, as JSON.
"""
import json
import sys

import tinker
from tinker import types
from tinker_cookbook import checkpoint_utils

LOG, STEPS = sys.argv[1], int(sys.argv[2])


def datum(text):
    tokens = list(text.encode())
    n = len(tokens) - 1
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=tokens[1:], dtype="int64",
                                              shape=[n]),
            "weights": types.TensorData(data=[1.0] * n, dtype="float32",
                                        shape=[n])})


def main():
    service = tinker.ServiceClient()
    last = checkpoint_utils.get_last_checkpoint(LOG)
    said = {"batch": 0}
    if last is None:
        training = service.create_lora_training_client(base_model="tnk/byte-lm",
                                                       rank=8)
    else:
        training = service.create_training_client_from_state_with_optimizer(
            last.state_path)
        said = {"batch": last.batch, "state_path": last.state_path,
                "extra": last.extra,
                "same": training.save_state(f"same-{STEPS}").result().path}
    for step in range(said["batch"], STEPS):
        training.forward_backward([datum(f"step {step}")], "cross_entropy").result()
        training.optim_step(types.AdamParams(learning_rate=0.01)).result()
    checkpoint_utils.save_checkpoint(
        training, name=f"{STEPS:06d}", log_path=LOG,
        loop_state={"batch": STEPS, "epoch": 0, "seed": 7}, kind="both")
    print(json.dumps(said))


main()
