/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rl/address.h"

#include <string.h>

#include "support/test.h"

TEST(addresses_with_a_port) {
  static const struct {
    const char *url, *host;
    int port;
  } rows[] = {
      {"http://127.0.0.1:8000", "127.0.0.1", 8000},
      {"http://127.0.0.1:0", "127.0.0.1", 0},
      {"http://0.0.0.0:65535/", "0.0.0.0", 65535},
      {"http://[::1]:80", "::1", 80},
      {"http://[2001:DB8::7]:9/", "2001:DB8::7", 9},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    rl_address_t address;

    CHECK(rl_address_read(&address, rows[i].url) == 0);
    CHECK(strcmp(address.host, rows[i].host) == 0);
    CHECK(address.port == rows[i].port);
  }
}

TEST(other_texts_are_rejected) {
  static const char *const rows[] = {
      "",
      "http://",
      "127.0.0.1:8000",
      "https://127.0.0.1:8000",
      "http://127.0.0.1",
      "http://127.0.0.1:",
      "http://127.0.0.1:65536",
      "http://127.0.0.1:123456",
      "http://127.0.0.1:-1",
      "http://127.0.0.1:1x",
      "http://127.0.0.1:1/v1",
      "http://localhost:1",
      "http://:1",
      "http://[]:1",
      "http://[::1",
      "http://[::1]",
      "http://[::1]1",
      "http://user@127.0.0.1:1",
      ("http://1111111111111111111111111111111111111111111111111111111111111111"
       ":1"),
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    rl_address_t address;

    CHECK(rl_address_read(&address, rows[i]) == -1);
  }
}
