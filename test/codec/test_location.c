/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/wire/format/location.h"
#include "support/test.h"
#include "tnk/error.h"

static void good(const char *text, const char *authority, int port,
                 const char *target) {
  tnk__location_t location;

  CHECK_INT(tnk__location_parse(&location, test_allocator(), text), TNK_OK);
  CHECK_STR(location.authority, authority);
  CHECK_STR(location.target, target);
  CHECK_INT(location.port, port);
  tnk__location_deinit(&location, test_allocator());
}

TEST(O1_addresses_keep_what_stands_behind_the_host) {
  good("https://Hub.Example/a%2fb/c?x=1&y=//#f", "hub.example", 443,
       "/a%2fb/c?x=1&y=//");
  good("http://127.0.0.1:81", "127.0.0.1:81", 81, "/");
  good("http://h?sig=a/b", "h", 80, "/?sig=a/b");
  good("https://[::1]:8/", "[::1]:8", 8, "/");
  good("http://h/dir/", "h", 80, "/dir/");
}

TEST(O1_what_is_no_address_is_refused) {
  static const char *const bad[] = {"",
                                    "h/a",
                                    "ftp://h/a",
                                    "http://",
                                    "http://u@h/",
                                    "http:///a",
                                    "http://h/ ",
                                    "http://h/\xc3\xa4",
                                    "http://h/\n",
                                    "//h/a"};
  tnk__location_t location;

  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    CHECK_INT(tnk__location_parse(&location, test_allocator(), bad[i]),
              TNK_EINVAL);
    CHECK(location.text == NULL);
  }
}

TEST(O1_redirections_of_every_form) {
  static const struct {
    const char *reference;
    const char *text; /* NULL: refused */
  } cases[] = {{"https://cdn.x/y?z", "https://cdn.x/y?z"},
               {"http://b:82/y", "http://b:82/y"},
               {"//c/d", "http://c/d"},
               {"/api/x", "http://b:81/api/x"},
               {"?n=1", "http://b:81/p/q?n=1"},
               {"r/s", "http://b:81/p/r/s"},
               {"", NULL},
               {"#f", NULL},
               {"javascript:x", NULL},
               {"http://u:p@b/", NULL},
               {"/a b", NULL}};
  tnk__location_t base;
  tnk__location_t out;

  CHECK_INT(
      tnk__location_parse(&base, test_allocator(), "http://b:81/p/q?old=/1"),
      TNK_OK);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int err =
        tnk__location_join(&out, test_allocator(), &base, cases[i].reference);
    CHECK_INT(err, cases[i].text != NULL ? TNK_OK : TNK_EINVAL);
    if (cases[i].text != NULL)
      CHECK_STR(out.text, cases[i].text);
    tnk__location_deinit(&out, test_allocator());
  }
  tnk__location_deinit(&base, test_allocator());
}

TEST(O1_only_the_same_scheme_host_and_port_are_one_origin) {
  static const struct {
    const char *text;
    int is_same;
  } cases[] = {{"https://h/x", 1},      {"https://H:443/", 1},
               {"http://h/x", 0},       {"https://h:444/x", 0},
               {"https://h.evil/x", 0}, {"https://sub.h/x", 0},
               {"http://h:443/", 0}};
  tnk__location_t a;
  tnk__location_t b;

  CHECK_INT(tnk__location_parse(&a, test_allocator(), "https://h/"), TNK_OK);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    CHECK_INT(tnk__location_parse(&b, test_allocator(), cases[i].text), TNK_OK);
    CHECK_INT(tnk__location_same_origin(&a, &b), cases[i].is_same);
    tnk__location_deinit(&b, test_allocator());
  }
  tnk__location_deinit(&a, test_allocator());
}

TEST(S3_26a_addresses_without_memory) {
  tnk__location_t base;
  tnk__location_t out;
  int err;

  CHECK_INT(tnk__location_parse(&base, test_allocator(), "http://b/p"), TNK_OK);
  for (long n = 0;; n++) {
    test_alloc_fail_at(n);
    err = tnk__location_join(&out, test_allocator(), &base, "/q");
    if (!test_alloc_did_fail())
      break;
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(out.text == NULL);
  }
  test_alloc_fail_at(-1);
  CHECK_INT(err, TNK_OK);
  tnk__location_deinit(&out, test_allocator());
  tnk__location_deinit(&base, test_allocator());
}
