/* SPDX-License-Identifier: MIT */
#include "lib/api/config.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "support/test.h"
#include "tnk/error.h"

/* What the options and the environment say, for a service at `url`. The
 * variables are gone when a case begins. */
typedef struct {
  tnk__proxies_t proxies;
  tnk__proxy_options_t options;
  const char *why;
} world_t;

static int load(world_t *world, const char *url) {
  const tnk_allocator_t *alloc = test_allocator();
  tnk__arena_t arena;
  tnk__url_t parsed;
  int err;

  tnk__proxies_deinit(&world->proxies, alloc);
  tnk__arena_init(&arena, tnk__allocator_default(), 65536);
  CHECK_INT(tnk__url_parse(&parsed, &arena, url, NULL), TNK_OK);
  world->why = NULL;
  err = tnk__proxies_load(&world->proxies, alloc, &world->options, &parsed,
                          &world->why);
  tnk__arena_deinit(&arena);
  return err;
}

static void unload(world_t *world) {
  tnk__proxies_deinit(&world->proxies, test_allocator());
}

static void set(const char *name, const char *value) {
  CHECK_INT(setenv(name, value, 1), 0);
}

/* Which proxies there are, NULL for none. */
static void check(world_t *world, const char *https, const char *http) {
  CHECK_INT(load(world, "https://h.example"), TNK_OK);
  CHECK_STR(world->proxies.https.at.authority, https);
  CHECK_STR(world->proxies.http.at.authority, http);
}

TEST(A16_variables_in_their_order) {
  world_t world = {.why = NULL};

  check(&world, NULL, NULL);
  set("ALL_PROXY", "http://all");
  check(&world, "all", "all");
  set("all_proxy", "http://small-all");
  check(&world, "small-all", "small-all");
  set("HTTPS_PROXY", "http://tls:1");
  check(&world, "tls:1", "small-all");
  set("https_proxy", "http://small-tls");
  check(&world, "small-tls", "small-all");
  set("http_proxy", "plain:3128");
  check(&world, "small-tls", "plain:3128");
  set("https_proxy", "");
  check(&world, "tls:1", "plain:3128");
  unload(&world);
}

/* It is what a client of a CGI program can set: Proxy: http://evil */
TEST(A16_HTTP_PROXY_in_capital_letters_is_ignored) {
  world_t world = {.why = NULL};

  set("HTTP_PROXY", "http://evil");
  check(&world, NULL, NULL);
  unload(&world);
}

TEST(A16_the_option_wins) {
  world_t world = {.options = {.proxy = "http://option:1"}};

  set("https_proxy", "http://environment");
  set("http_proxy", "https://unusable");
  set("NO_PROXY", "*");
  check(&world, "option:1", "option:1");
  CHECK(world.proxies.no_proxy == NULL);
  world.options.no_proxy = "x.example";
  check(&world, "option:1", "option:1");
  CHECK_STR(world.proxies.no_proxy, "x.example");
  world.options.proxy = "";
  check(&world, NULL, NULL);
  world.options.proxy = "socks5://u:canary@h";
  check(&world, "h:1080", "h:1080");
  CHECK_STR(world.proxies.http.password, "canary");
  world.options.proxy = "socks4://u:canary@h";
  CHECK_INT(load(&world, "https://h"), TNK_EINVAL);
  CHECK(strstr(world.why, "socks5://") != NULL && !strstr(world.why, "canary"));
  unload(&world);
}

TEST(NO_PROXY_from_option_and_environment) {
  world_t world = {.why = NULL};

  set("https_proxy", "http://p");
  set("NO_PROXY", "big.example");
  check(&world, "p", NULL);
  CHECK_STR(world.proxies.no_proxy, "big.example");
  set("no_proxy", "small.example");
  check(&world, "p", NULL);
  CHECK_STR(world.proxies.no_proxy, "small.example");
  world.options.no_proxy = "";
  check(&world, "p", NULL);
  CHECK_STR(world.proxies.no_proxy, "");
  unload(&world);
}

TEST(A16_ALL_PROXY_may_be_of_any_kind) {
  world_t world = {.why = NULL};

  set("ALL_PROXY", "socks5h://u:p@s");
  check(&world, "s:1080", "s:1080");
  CHECK_INT(world.proxies.https.kind, TNK__PROXY_SOCKS5H);
  set("https_proxy", "https://t");
  check(&world, "t", "s:1080");
  CHECK_INT(world.proxies.https.at.is_tls, 1);
  unload(&world);
}

/* What is wrong in the environment matters only to whom it concerns. */
TEST(A16_variables_that_cannot_be_used) {
  const tnk_pair_t header = {"X", "a\nb"};
  world_t world = {.why = NULL};

  set("ALL_PROXY", "socks4://127.0.0.1:1080");
  set("http_proxy", "http://p");
  CHECK_INT(load(&world, "https://h.example"), TNK_EINVAL);
  CHECK_STR(world.why, "the proxy's URL does not begin with http://, https://, "
                       "socks5:// or socks5h://");
  CHECK_INT(load(&world, "http://h.example"), TNK_OK);
  CHECK(tnk__proxies_find(&world.proxies, "h", 443, 1)->why != NULL);
  set("no_proxy", "h.example");
  CHECK_INT(load(&world, "https://h.example"), TNK_OK);
  set("no_proxy", "");
  set("ALL_PROXY", "ftp://p");
  CHECK_INT(load(&world, "https://h.example"), TNK_EINVAL);
  set("ALL_PROXY", "");
  world.options.headers = &header;
  world.options.n_headers = 1;
  CHECK_INT(load(&world, "http://h.example"), TNK_EINVAL);
  CHECK_STR(world.why, "a header of proxy_headers cannot be sent");
  unload(&world);
}

TEST(A16_loading_without_memory) {
  world_t world = {.options = {.proxy = "http://u:p@h", .no_proxy = "x"}};
  int err;
  long n = 0;

  do {
    test_alloc_fail_at(n++);
    err = load(&world, "https://h");
    CHECK(err == (test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK));
  } while (err != TNK_OK);
  test_alloc_fail_at(-1);
  unload(&world);
  CHECK_INT(test_alloc_live(), 0);
}
