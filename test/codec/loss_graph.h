/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_LOSS_GRAPH_H
#define TNK_TEST_CODEC_LOSS_GRAPH_H

#include "tnk/training.h"

/* The loss of the protocol's vector L: its graph, and what it reads. */
static const char loss_graph[] =
    "{\"format\":1,\"nodes\":[{\"op\":\"placeholder\",\"name\":\"logprobs\""
    ",\"target\":\"logprobs\",\"args\":[],\"kwargs\":{}},{\"op\":\"placehol"
    "der\",\"name\":\"advantages\",\"target\":\"advantages\",\"args\":[],\""
    "kwargs\":{}},{\"op\":\"call_function\",\"name\":\"sub\",\"target\":\"o"
    "perator.sub\",\"args\":[{\"ref\":\"logprobs\"},1.5],\"kwargs\":{}},{\""
    "op\":\"call_function\",\"name\":\"exp\",\"target\":\"torch.exp\",\"arg"
    "s\":[{\"ref\":\"sub\"}],\"kwargs\":{}},{\"op\":\"call_function\",\"nam"
    "e\":\"clamp\",\"target\":\"torch.clamp\",\"args\":[{\"ref\":\"exp\"}],"
    "\"kwargs\":{\"min\":{\"float\":\"-inf\"},\"max\":10}},{\"op\":\"call_f"
    "unction\",\"name\":\"mul\",\"target\":\"operator.mul\",\"args\":[{\"re"
    "f\":\"clamp\"},{\"ref\":\"advantages\"}],\"kwargs\":{}},{\"op\":\"call"
    "_function\",\"name\":\"getitem\",\"target\":\"operator.getitem\",\"arg"
    "s\":[{\"ref\":\"mul\"},{\"tuple\":[{\"ellipsis\":true},null]}],\"kwarg"
    "s\":{}},{\"op\":\"call_function\",\"name\":\"sum_1\",\"target\":\"torc"
    "h.sum\",\"args\":[{\"ref\":\"getitem\"}],\"kwargs\":{\"dim\":{\"tuple"
    "\":[0,1]},\"dtype\":null}},{\"op\":\"call_method\",\"name\":\"to\",\"t"
    "arget\":\"to\",\"args\":[{\"ref\":\"sum_1\"},{\"dtype\":\"float32\"}],"
    "\"kwargs\":{}},{\"op\":\"call_function\",\"name\":\"neg\",\"target\":"
    "\"operator.neg\",\"args\":[{\"ref\":\"to\"}],\"kwargs\":{}},{\"op\":\""
    "output\",\"name\":\"output\",\"target\":\"output\",\"args\":[{\"tuple"
    "\":[{\"ref\":\"neg\"},{\"dict\":{\"custom/a:sum\":{\"ref\":\"to\"}}}]}"
    "],\"kwargs\":{}}]}";

static const tnk_loss_argument_t loss_arguments[] = {{.name = "logprobs"},
                                                     {.name = "advantages"}};

static inline tnk_loss_options_t loss_options(void) {
  tnk_loss_options_t options = TNK_LOSS_OPTIONS_INIT;

  options.name = "nll";
  options.arguments = loss_arguments;
  options.n_arguments = 2;
  options.graph = loss_graph;
  return options;
}

#endif
