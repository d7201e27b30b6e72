# SPDX-License-Identifier: MIT
"""Runs a training module of the cookbook on batches that are given.

    python train_driver.py JOB.json

It runs in the environment of the cookbook. The modules, their data types and their
renderers are used as they are; only the order of the data comes from the job.
"""
import asyncio
import json
import sys

import chz
from tinker_cookbook.preference import train_dpo
from tinker_cookbook.renderers import get_renderer
from tinker_cookbook.supervised import train as supervised
from tinker_cookbook.supervised.common import datum_from_model_input_weights
from tinker_cookbook.supervised.data import conversation_to_datum
from tinker_cookbook.supervised.types import SupervisedDataset, SupervisedDatasetBuilder
from tinker_cookbook.tokenizer_utils import get_tokenizer

with open(sys.argv[1], encoding="utf-8") as file:
    JOB = json.load(file)
IS_DPO = JOB["method"] == "dpo"


class Batches(SupervisedDataset):
    def __init__(self):
        self.renderer = get_renderer("qwen3_instruct", get_tokenizer(JOB["model"]))

    def data_of(self, row):
        if not IS_DPO:
            return [conversation_to_datum(row["messages"], self.renderer, None)]
        # The body of preference.dpo_datasets.comparison_to_datum.
        return [datum_from_model_input_weights(*self.renderer.build_supervised_example(part), None)
                for part in (row["chosen"], row["rejected"])]

    def get_batch(self, index):
        return [datum for row in JOB["batches"][index] for datum in self.data_of(row)]

    def set_epoch(self, seed=0):
        pass

    def __len__(self):
        return len(JOB["batches"])


@chz.chz
class Builder(SupervisedDatasetBuilder):
    def __call__(self):
        return Batches(), None


SETTINGS = {
    "log_path": JOB["log"], "model_name": JOB["model"], "recipe_name": "comparison",
    "dataset_builder": Builder(), "learning_rate": JOB["rate"], "lora_rank": JOB["rank"],
    "adam_eps": JOB["eps"], "lr_schedule": JOB["schedule"], "save_every": 0, "eval_every": 0}
if IS_DPO:
    train_dpo.main(train_dpo.Config(dpo_beta=JOB["beta"], **SETTINGS))
else:
    asyncio.run(supervised.main(supervised.Config(**SETTINGS)))
