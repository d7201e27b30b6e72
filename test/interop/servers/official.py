# SPDX-License-Identifier: MIT
"""A model trained and sampled by the official client, in the version that the
server wants.

    python3 official.py URL MODEL STEPS

Prints the loss of each step and what was sampled, as JSON.
"""
import json
import os
import sys

os.environ["TINKER_BASE_URL"] = sys.argv[1]
os.environ["TINKER_TELEMETRY"] = "0"
import tinker  # noqa: E402
from tinker import types  # noqa: E402

MODEL, STEPS = sys.argv[2], int(sys.argv[3])
TEXT = list(b"hello world")


def datum():
    n = len(TEXT) - 1
    return types.Datum(
        model_input=types.ModelInput.from_ints(TEXT[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=TEXT[1:], dtype="int64", shape=[n]),
            "weights": types.TensorData(data=[1.0] * n, dtype="float32", shape=[n])})


def main():
    service = tinker.ServiceClient()
    training = service.create_lora_training_client(base_model=MODEL, rank=8)
    losses = []
    for _ in range(STEPS):
        passed = training.forward_backward([datum()], "cross_entropy")
        training.optim_step(types.AdamParams(learning_rate=0.01)).result(60)
        losses.append(-sum(sum(out["logprobs"].data)
                           for out in passed.result(60).loss_fn_outputs))
    path = training.save_state("official").result(60).path
    sampler = training.save_weights_and_get_sampling_client()
    sample = sampler.sample(types.ModelInput.from_ints(TEXT[:1]), 1,
                            types.SamplingParams(max_tokens=4, temperature=0.0)).result(60)
    print(json.dumps({"losses": losses, "path": path,
                      "tokens": list(sample.sequences[0].tokens)}), flush=True)
    os._exit(0)  # its threads keep the process for seconds


main()
