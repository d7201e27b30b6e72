/* SPDX-License-Identifier: MIT */
#include "lib/io/net/dns.h"

#include "lib/base/alloc.h"
#include "net/client.h"

typedef struct {
  tnk__dns_query_t query;
  int n_done;
  int cancel_too; /* cancel `other` from the answer */
  tnk__dns_query_t *other;
  int forget; /* the entry first, before `other` is asked */
  struct world_of_names *world;
} ask_t;

static void on_answer(tnk__dns_query_t *query) {
  ask_t *ask = tnk__container_of(query, ask_t, query);

  ask->n_done++;
  if (ask->other != NULL)
    tnk__dns_cancel(ask->other);
}

typedef struct world_of_names {
  context_t context;
  tnk__net_t *net;
} world_of_names_t;

static void open_net(world_of_names_t *world) {
  context_open(&world->context);
  CHECK_INT(tnk__net_new(&world->net, &world->context.loop, NULL), TNK_OK);
}

static void close_net(world_of_names_t *world) {
  tnk__net_unref(world->net);
  context_close(&world->context);
}

static void resolve(world_of_names_t *world, ask_t *ask, const char *host) {
  memset(ask, 0, sizeof(*ask));
  tnk__dns_resolve(&world->net->dns, &ask->query, host, on_answer);
  CHECK_INT(ask->n_done, 0);
}

TEST(addresses_need_no_look_up) {
  static const char *const hosts[] = {"192.0.2.7", "2001:db8::7"};
  world_of_names_t world;
  const uint8_t *bytes;
  ask_t ask;
  size_t i;

  open_net(&world);
  for (i = 0; i < 2; i++) {
    resolve(&world, &ask, hosts[i]);
    TEST_RUN_UNTIL(&world.context.uv, ask.n_done > 0);
    CHECK_INT(ask.query.err, TNK_OK);
    CHECK_INT(ask.query.n_addresses, 1);
    CHECK_INT(tnk__address_bytes(&ask.query.addresses[0], &bytes),
              i == 0 ? 4 : 16);
    CHECK_INT(bytes[i == 0 ? 3 : 15], 7);
  }
  CHECK_INT(world.net->dns.n_lookups, 0);
  close_net(&world);
}

TEST(questions_for_one_name_share_a_look_up_and_its_answer) {
  world_of_names_t world;
  ask_t asks[3];
  int i;

  if (!test_has_localhost())
    test_skip("localhost has no address here");
  open_net(&world);
  tnk__context_fake_clock(&world.context.loop, 1000);
  for (i = 0; i < 2; i++)
    resolve(&world, &asks[i], i == 0 ? "localhost" : "LOCALHOST");
  TEST_RUN_UNTIL(&world.context.uv, asks[0].n_done && asks[1].n_done);
  CHECK_INT(asks[0].query.err, TNK_OK);
  CHECK(asks[1].query.n_addresses > 0);
  resolve(&world, &asks[2], "localhost");
  TEST_RUN_UNTIL(&world.context.uv, asks[2].n_done > 0);
  CHECK_INT(world.net->dns.n_lookups, 1);
  /* It is not kept for long. */
  tnk__context_advance(&world.context.loop, 30000);
  resolve(&world, &asks[2], "localhost");
  TEST_RUN_UNTIL(&world.context.uv, asks[2].n_done > 0);
  CHECK_INT(world.net->dns.n_lookups, 2);
  close_net(&world);
}

TEST(a_name_without_address_is_an_error_that_is_not_kept) {
  char longest[300];
  world_of_names_t world;
  ask_t ask;

  memset(longest, 'a', sizeof(longest));
  longest[sizeof(longest) - 1] = '\0';
  open_net(&world);
  /* No look-up at all for what cannot be a name. */
  resolve(&world, &ask, longest);
  TEST_RUN_UNTIL(&world.context.uv, ask.n_done > 0);
  CHECK_INT(ask.query.err, TNK_EDNS);
  resolve(&world, &ask, "");
  TEST_RUN_UNTIL(&world.context.uv, ask.n_done > 0);
  CHECK_INT(ask.query.err, TNK_EDNS);
  CHECK_INT(world.net->dns.n_lookups, 0);
  /* A label of 64 letters is refused before any packet is sent. */
  longest[64] = '\0';
  resolve(&world, &ask, longest);
  TEST_RUN_UNTIL(&world.context.uv, ask.n_done > 0);
  CHECK_INT(ask.query.err, TNK_EDNS);
  CHECK(ask.query.cause < 0);
  CHECK_INT(world.net->dns.n_entries, 0);
  close_net(&world);
}

TEST(a_canceled_question_is_not_answered) {
  world_of_names_t world;
  ask_t a;
  ask_t b;

  open_net(&world);
  resolve(&world, &a, "127.0.0.1");
  tnk__dns_cancel(&a.query);
  context_turn(&world.context);
  CHECK_INT(a.n_done, 0);
  /* Nor one that is canceled by the answer of another. */
  resolve(&world, &a, "localhost");
  resolve(&world, &b, "localhost");
  a.other = &b.query;
  b.other = &a.query;
  TEST_RUN_UNTIL(&world.context.uv, a.n_done + b.n_done > 0);
  CHECK_INT(a.n_done + b.n_done, 1);
  close_net(&world);
}

static void ask_again(tnk__dns_query_t *query) {
  ask_t *ask = tnk__container_of(query, ask_t, query);
  world_of_names_t *world = ask->world;

  ask->n_done++;
  if (ask->forget)
    tnk__dns_forget(&world->net->dns, "localhost");
  tnk__dns_resolve(&world->net->dns, ask->other, "localhost", on_answer);
}

TEST(a_question_asked_by_an_answer_is_answered_too) {
  if (!test_has_localhost())
    test_skip("localhost has no address here");
  for (int forget = 0; forget < 2; forget++) {
    world_of_names_t world;
    ask_t asks[2];
    ask_t next[2];
    int i;
    memset(next, 0, sizeof(next));
    open_net(&world);
    for (i = 0; i < 2; i++) {
      resolve(&world, &asks[i], "localhost");
      asks[i].query.done = ask_again;
      asks[i].other = &next[i].query;
      asks[i].world = &world;
      asks[i].forget = forget;
    }
    TEST_RUN_UNTIL(&world.context.uv, next[0].n_done && next[1].n_done);
    for (i = 0; i < 2; i++) {
      CHECK_INT(asks[i].n_done, 1);
      CHECK_INT(next[i].query.err, TNK_OK);
      CHECK(next[i].query.n_addresses > 0);
    }
    if (!forget)
      CHECK_INT(world.net->dns.n_lookups, 1);
    close_net(&world);
  }
}

TEST(a_net_that_is_let_go_waits_for_its_look_ups) {
  world_of_names_t world;
  ask_t ask;

  open_net(&world);
  resolve(&world, &ask, "localhost");
  tnk__dns_cancel(&ask.query);
  close_net(&world);
  CHECK_INT(ask.n_done, 0);
}

TEST(the_table_is_bounded) {
  tnk__address_t address;
  world_of_names_t world;
  char name[32];
  int i;

  open_net(&world);
  CHECK(tnk__address_parse(&address, "192.0.2.1"));
  for (i = 0; i < 100; i++) {
    snprintf(name, sizeof(name), "host%d.test", i);
    CHECK_INT(tnk__dns_learn(&world.net->dns, name, &address, 1), TNK_OK);
  }
  CHECK_INT(world.net->dns.n_entries, 32);
  close_net(&world);
}
