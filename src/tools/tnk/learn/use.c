/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/use.h"

#include <stdio.h>
#include <string.h>

#include "tools/tnk/learn/model.h"

static void put_option(const char *name, const char *value) {
  if (value != NULL)
    printf(" --%s '%s'", name, value);
}

void learn_print_use(const char *sampler_path, const char *served,
                     const char *model, const char *tokenizer) {
  printf("weights   %s\n", sampler_path);
  if (served != NULL) {
    printf("serve     tnk local --port 8000 --data '%s'", served);
    if (strcmp(model, LEARN_BYTE_MODEL) != 0)
      put_option("model", model);
    put_option("tokenizer", tokenizer);
    printf(" &\n          export TINKER_BASE_URL=http://127.0.0.1:8000 "
           "TINKER_API_KEY=tml-local\n");
  }
  printf("sample    tnk sample --checkpoint %s", sampler_path);
  put_option("tokenizer", tokenizer);
  printf(" 'TEXT'\ndownload  tnk checkpoint download %s\n", sampler_path);
}
