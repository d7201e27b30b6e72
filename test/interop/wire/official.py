# SPDX-License-Identifier: MIT
"""Makes the calls of calls.json with the official client: reads the name of a
case, runs it, answers with a line. A line that ends with `await:PATH` asks for
a line once a request for PATH has arrived. tnk.c is the same for this library."""

import base64
import concurrent.futures
import json
import os
import sys
import warnings
from pathlib import Path

import tinker
from tinker import types

from official_rest import RestCalls, settle

MODEL = "tnk/byte-lm"


def tensor(spec):
    dtype, data = ("int64", spec["i64"]) if "i64" in spec else ("float32", spec["f32"])
    sparse = {}
    if "crow" in spec:
        sparse = {"sparse_crow_indices": spec["crow"], "sparse_col_indices": spec["col"]}
    return types.TensorData(data=data, dtype=dtype, shape=spec.get("shape") or [len(data)], **sparse)


def chunk(spec):
    if "text" in spec:
        return types.EncodedTextChunk(tokens=list(spec["text"].encode()))
    if "tokens" in spec:
        return types.EncodedTextChunk(tokens=spec["tokens"])
    more = {"format": spec["format"]}
    if "expected" in spec:
        more["expected_tokens"] = spec["expected"]
    if "location" in spec:
        return types.ImageAssetPointerChunk(location=spec["location"], **more)
    return types.ImageChunk(data=base64.b64decode(spec["image"]), **more)


def model_input(chunks):
    return types.ModelInput(chunks=[chunk(c) for c in chunks])


def spans(specs):
    kinds = {"prompt": types.PromptProvenanceSpan, "sampled": types.SampledProvenanceSpan}
    return [kinds[k](sequence_id=i, offset=o, length=n) for k, i, o, n in specs]


def datum(spec):
    made = types.Datum(
        model_input=model_input(spec["chunks"]),
        loss_fn_inputs={name: tensor(t) for name, t in spec["inputs"].items()},
    )
    if "input_spans" in spec:
        made = made.with_provenance(spans(spec["input_spans"]), spans(spec["loss_spans"]))
    return made


def optimizer(spec):
    if "type" not in spec or spec["type"] == "adamw":
        return types.AdamOptimizerConfig()
    if spec["type"] == "dimuon":
        return types.DimuonOptimizerConfig()
    return types.optimizer.OptimizerConfigBase.model_validate(spec)


def await_request(path):
    """Return once a request for the path has arrived there."""
    print(f"await:{path}", flush=True)
    sys.stdin.readline()


def pick(args, *names):
    return {name: args[name] for name in names if name in args}


class Run(RestCalls):
    def __init__(self, options):
        self.open(options)
        self.training = self.sampling = self.path = None

    def open(self, options):
        self.service = tinker.ServiceClient(
            **pick(options, "user_metadata", "project_id", "display_name"),
            **({"default_headers_overrides": options["headers"]} if "headers" in options else {}),
        )

    def again(self, args):
        """Another service, as another program has it."""
        self.close()
        self.open(args)

    def path_of(self, args):
        return self.path if args["path"] == "$" else args["path"]

    def capabilities(self, _args):
        settle(self.service.create_rest_client().get_server_capabilities())

    def lora(self, args):
        more = pick(args, "rank", "seed", "train_mlp", "train_attn", "train_unembed", "user_metadata")
        if "optimizer" in args:
            more["optimizer"] = optimizer(args["optimizer"])
        self.training = settle(
            self.service.create_lora_training_client(args.get("base_model", MODEL), **more)
        )

    def restore(self, args):
        more = pick(args, "user_metadata", "base_model", "weights_access_token")
        if args.get("with_optimizer"):
            make = self.service.create_training_client_from_state_with_optimizer
        else:
            make = self.service.create_training_client_from_state
            if "optimizer" in args:
                more["optimizer"] = optimizer(args["optimizer"])
        self.training = settle(make(self.path_of(args), **more))

    def pass_(self, args, call):
        data = [datum(d) for d in args["data"] for _ in range(args.get("times", 1))]
        more = [args["settings"]] if "settings" in args else []
        settle(call(data, args.get("loss", "cross_entropy"), *more))

    def forward(self, args):
        self.pass_(args, self.training.forward)

    def forward_backward(self, args):
        self.pass_(args, self.training.forward_backward)

    def custom(self, args):
        def loss(_data, logprobs):
            return sum((p * (i + 1.0)).sum() for i, p in enumerate(logprobs)) * -1.0, {}

        settle(self.training.forward_backward_custom([datum(d) for d in args["data"]], loss))

    def optim_step(self, args):
        if "adam" in args:
            params = types.AdamParams(**args["adam"])
        elif "dimuon" in args:
            params = types.DimuonParams(**args["dimuon"])
        else:
            params = types.optimizer.OptimParamsBase.model_validate(args["raw"])
        settle(self.training.optim_step(params))

    def save_state(self, args):
        more = pick(args, "ttl_seconds", "overwrite", "user_metadata")
        self.path = settle(self.training.save_state(args["name"], **more)).path

    def save_sampler(self, args):
        more = pick(args, "ttl_seconds", "user_metadata")
        self.path = settle(self.training.save_weights_for_sampler(args["name"], **more)).path

    def save_external(self, args):
        more = pick(args, "ttl_seconds", "age_encryption_recipients")
        settle(self.training.save_weights_external(args["name"], **more))

    def load_state(self, args):
        call = self.training.load_state
        if args.get("with_optimizer"):
            call = self.training.load_state_with_optimizer
        settle(call(self.path_of(args)))

    def sampler(self, args):
        more = pick(args, "base_model", "record_stability_info")
        if "path" in args:
            more["model_path"] = self.path_of(args)
        elif "base_model" not in args:
            more["base_model"] = MODEL
        self.sampling = settle(self.service.create_sampling_client(**more))

    def save_and_sampler(self, args):
        more = pick(args, "kind", "record_stability_info")
        self.sampling = settle(self.training.save_weights_and_get_sampling_client(**more))

    def start_sample(self, args):
        more = pick(args, "include_prompt_logprobs", "topk_prompt_logprobs", "topk_sample_logprobs",
                    "prompt_alt_tokens_k", "prompt_logprobs_last_n")
        if "target" in args:
            more["target_prompt_logprobs"] = tensor(args["target"])
        params = types.SamplingParams(**args.get("params", {}))
        return self.sampling.sample(model_input(args["prompt"]), args.get("n", 1), params, **more)

    def sample(self, args):
        settle(self.start_sample(args))

    def samples(self, args):
        for future in [self.start_sample(args) for _ in range(args["times"])]:
            settle(future)

    def cancel(self, args):
        future = self.start_sample(args)
        await_request("retrieve_future")
        future.future().cancel()
        await_request("cancel_future")

    def logprobs(self, args):
        more = [args["last_n"]] if "last_n" in args else []
        settle(self.sampling.compute_logprobs(model_input(args["prompt"]), *more))

    def close(self):
        try:
            settle(self.service.close("success"))
        except Exception:  # the request is what matters
            pass


def run(case):
    outcomes = []
    one = Run(case.get("service", {}))
    for name, args in case["do"]:
        try:
            getattr(one, "pass_" if name == "pass" else name)(args)
            outcomes.append("ok")
        except (Exception, concurrent.futures.CancelledError) as error:
            outcomes.append(f"{type(error).__name__}: {error}"[:200])
    one.close()
    return outcomes


def main():
    warnings.simplefilter("ignore")
    cases = {c["name"]: c for c in json.loads(Path(sys.argv[1]).read_text())}
    for line in sys.stdin:
        print(json.dumps(run(cases[line.strip()])), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
