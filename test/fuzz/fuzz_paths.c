/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/data.h"
#include "tnk/error.h"
#include "tools/local/store/store.h"

/* A checkpoint's path, as the client and as the local server read it. */

static const char *const kinds[] = {NULL, "weights", "sampler_weights",
                                    "external_weights"};

/* Written anew from its parts it is the same text. */
static int check_client(const char *text) {
  tnk_path_t path = TNK_PATH_INIT;
  size_t n = strlen(text) + 1;
  char *again;
  int err = tnk_path_parse(&path, text);

  FUZZ_CHECK(err == TNK_OK || err == TNK_EINVAL);
  if (err != TNK_OK)
    return 0;
  FUZZ_CHECK(path.kind >= TNK_PATH_WEIGHTS);
  FUZZ_CHECK(path.kind <= TNK_PATH_EXTERNAL_WEIGHTS);
  FUZZ_CHECK(path.run > text && path.run_length > 0);
  FUZZ_CHECK(path.name > path.run + path.run_length);
  FUZZ_CHECK(path.name < text + n - 1 && strchr(path.name, '/') == NULL);
  again = malloc(n);
  FUZZ_CHECK(again != NULL);
  FUZZ_CHECK((size_t)snprintf(again, n, "tinker://%.*s/%s/%s",
                              (int)path.run_length, path.run, kinds[path.kind],
                              path.name) == n - 1);
  FUZZ_CHECK(strcmp(again, text) == 0);
  free(again);
  return 1;
}

/* Nothing that the server takes leads out of its directory, and two
 * checkpoints never share one. */
static void check_dir(const local_place_t *place) {
  local_server_t server = {.alloc = tnk__allocator_default()};
  char root[] = "/data";
  char dir[LOCAL_FILE];
  size_t n_parts = 0;

  server.data = root;
  FUZZ_CHECK(local_place_dir(&server, place, dir));
  FUZZ_CHECK(strncmp(dir, "/data/", 6) == 0);
  for (const char *p = dir; p != NULL; p = strchr(p + 1, '/')) {
    FUZZ_CHECK(p[0] == '/' && p[1] != '/' && p[1] != '.' && p[1] != '\0');
    n_parts++;
  }
  FUZZ_CHECK(n_parts == 4 && strpbrk(dir, ":\\") == NULL);
}

static void check_server(const char *text, int is_path) {
  char out[LOCAL_PATH];
  local_place_t place, again;

  if (!local_place_parse(&place, text))
    return;
  local_place_text(&place, out);
  FUZZ_CHECK(local_place_parse(&again, out));
  FUZZ_CHECK(again.kind == place.kind && strcmp(again.run, place.run) == 0 &&
             strcmp(again.name, place.name) == 0);
  /* The client's grammar is the wider one, but for two short forms. */
  FUZZ_CHECK(is_path || strcmp(out, text) != 0 ||
             place.kind == LOCAL_EPHEMERAL);
  check_dir(&place);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = tnk__strndup(tnk__allocator_default(), (const char *)data, size);

  FUZZ_CHECK(text != NULL);
  check_server(text, check_client(text));
  local_name_ok(text, 0);
  tnk__free(tnk__allocator_default(), text);
  return 0;
}
