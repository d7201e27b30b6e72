/* SPDX-License-Identifier: MIT */
#include "lib/client/call/call.h"

#define GET TNK__GET
#define OPTIONAL TNK__OPTIONAL
#define ABOUT_KEY TNK__ABOUT_KEY
#define NAMES TNK__NAMES
#define LONG TNK__LONG
#define IN_SESSION TNK__IN_SESSION

/* The control lane carries only calls of the library, a few at a time. So no
 * call of the program can delay a heartbeat. */
static const tnk__route_t routes[TNK__N_ROUTES] = {
    [TNK__ROUTE_CLIENT_CONFIG] = {"client/config", 0, 0, TNK__CALL_QUERY, 0,
                                  TNK__LANE_CONTROL},
    [TNK__ROUTE_DYNAMIC_CONFIG] = {"client/dynamic_config", 0, 10000,
                                   TNK__CALL_QUERY, OPTIONAL,
                                   TNK__LANE_CONTROL},
    [TNK__ROUTE_AUTH_TOKEN] = {"auth/token", 0, 0, TNK__CALL_QUERY, 0,
                               TNK__LANE_CONTROL},
    [TNK__ROUTE_CREATE_SESSION] = {"create_session", 0, 0,
                                   TNK__CALL_CREATE_SESSION, 0,
                                   TNK__LANE_CONTROL},
    [TNK__ROUTE_HEARTBEAT] = {"session_heartbeat", 0, 10000,
                              TNK__CALL_HEARTBEAT, 0, TNK__LANE_CONTROL},
    [TNK__ROUTE_FINISH] = {"sessions/%s/finish", 0, 2000, TNK__CALL_FINISH, 0,
                           TNK__LANE_CONTROL},
    [TNK__ROUTE_CAPABILITIES] = {"get_server_capabilities", GET, 0,
                                 TNK__CALL_QUERY, OPTIONAL, TNK__LANE_TRAIN},
    [TNK__ROUTE_HEALTH] = {"healthz", GET, 0, TNK__CALL_QUERY, OPTIONAL,
                           TNK__LANE_TRAIN},
    [TNK__ROUTE_CREATE_MODEL] = {"create_model", 0, 0, TNK__CALL_CREATE, 0,
                                 TNK__LANE_TRAIN},
    [TNK__ROUTE_CREATE_LOSS] = {"create_custom_loss", 0, 0, TNK__CALL_CREATE,
                                OPTIONAL, TNK__LANE_TRAIN},
    [TNK__ROUTE_CREATE_FROM_STATE] = {"load_weights", 0, 0, TNK__CALL_CREATE, 0,
                                      TNK__LANE_TRAIN},
    [TNK__ROUTE_WEIGHTS_INFO] = {"weights_info", 0, 0, TNK__CALL_QUERY, 0,
                                 TNK__LANE_TRAIN},
    [TNK__ROUTE_GET_INFO] = {"get_info", 0, 0, TNK__CALL_QUERY, IN_SESSION,
                             TNK__LANE_TRAIN},
    [TNK__ROUTE_UNLOAD] = {"unload_model", 0, 0, TNK__CALL_QUERY, OPTIONAL,
                           TNK__LANE_TRAIN},
    [TNK__ROUTE_CREATE_SAMPLING] = {"create_sampling_session", 0, 0,
                                    TNK__CALL_CREATE, 0, TNK__LANE_TRAIN},
    [TNK__ROUTE_GET_SAMPLER] = {"samplers/%s", GET, 0, TNK__CALL_QUERY,
                                IN_SESSION, TNK__LANE_TRAIN},
    [TNK__ROUTE_JOIN_SAMPLING] = {"join_sampling_session", 0, 0,
                                  TNK__CALL_CREATE, 0, TNK__LANE_CONTROL},
    [TNK__ROUTE_FORWARD_BACKWARD] = {"forward_backward", 0, 0, TNK__CALL_TRAIN,
                                     0, TNK__LANE_TRAIN},
    [TNK__ROUTE_FORWARD] = {"forward", 0, 0, TNK__CALL_TRAIN, OPTIONAL,
                            TNK__LANE_TRAIN},
    [TNK__ROUTE_OPTIM_STEP] = {"optim_step", 0, 0, TNK__CALL_TRAIN, 0,
                               TNK__LANE_TRAIN},
    [TNK__ROUTE_SAVE_STATE] = {"save_weights", 0, 0, TNK__CALL_SAVE, 0,
                               TNK__LANE_TRAIN},
    [TNK__ROUTE_SAVE_SAMPLER] = {"save_weights_for_sampler", 0, 0,
                                 TNK__CALL_SAVE, 0, TNK__LANE_TRAIN},
    [TNK__ROUTE_SAVE_EXTERNAL] = {"save_weights_external", 0, 0, TNK__CALL_SAVE,
                                  OPTIONAL, TNK__LANE_TRAIN},
    [TNK__ROUTE_LOAD_STATE] = {"load_weights", 0, 0, TNK__CALL_TRAIN, 0,
                               TNK__LANE_TRAIN},
    [TNK__ROUTE_SAMPLE] = {"asample", 0, 0, TNK__CALL_SAMPLE, 0,
                           TNK__LANE_SAMPLE},
    [TNK__ROUTE_STREAM_SAMPLE] = {"stream_sample", 0, 0, TNK__CALL_SAMPLE,
                                  OPTIONAL | NAMES | LONG, TNK__LANE_SAMPLE},
    [TNK__ROUTE_RETRIEVE_FUTURE] = {"retrieve_future", 0, 0, TNK__CALL_POLL, 0,
                                    TNK__LANE_TRAIN_POLL},
    [TNK__ROUTE_RETRIEVE_SAMPLE] = {"retrieve_future", 0, 0,
                                    TNK__CALL_POLL_SAMPLE, 0, TNK__LANE_POLL},
    [TNK__ROUTE_RETRIEVE_FUTURES] = {"retrieve_futures", 0, 0, TNK__CALL_POLL,
                                     OPTIONAL, TNK__LANE_POLL},
    [TNK__ROUTE_CANCEL_FUTURE] = {"cancel_future", 0, 30000, TNK__CALL_CANCEL,
                                  OPTIONAL, TNK__LANE_POLL},
    [TNK__ROUTE_REST_GET] = {"rest", GET, 0, TNK__CALL_QUERY, 0,
                             TNK__LANE_TRAIN},
    [TNK__ROUTE_REST_POST] = {"rest", 0, 0, TNK__CALL_QUERY, 0,
                              TNK__LANE_TRAIN},
    [TNK__ROUTE_REST_PUT] = {"rest", TNK__PUT, 0, TNK__CALL_CHANGE, 0,
                             TNK__LANE_TRAIN},
    [TNK__ROUTE_REST_DELETE] = {"rest", TNK__DELETE, 0, TNK__CALL_DELETE, 0,
                                TNK__LANE_TRAIN},
    [TNK__ROUTE_ARCHIVE] = {"rest", GET, 0, TNK__CALL_QUERY, TNK__POINTS,
                            TNK__LANE_TRAIN},
    [TNK__ROUTE_PUBLISH] = {"rest", 0, 0, TNK__CALL_PUBLISH, 0,
                            TNK__LANE_TRAIN},
    [TNK__ROUTE_UNPUBLISH] = {"rest", TNK__DELETE, 0, TNK__CALL_PUBLISH, 0,
                              TNK__LANE_TRAIN},
    [TNK__ROUTE_SEARCH_SESSIONS] = {"rest", 0, 0, TNK__CALL_QUERY, OPTIONAL,
                                    TNK__LANE_TRAIN},
    [TNK__ROUTE_USAGE] = {"rest", GET, 0, TNK__CALL_QUERY, OPTIONAL,
                          TNK__LANE_TRAIN},
    [TNK__ROUTE_STORAGE] = {"rest", GET, 0, TNK__CALL_QUERY, OPTIONAL,
                            TNK__LANE_TRAIN},
    [TNK__ROUTE_AUDIT] = {"rest", GET, 0, TNK__CALL_QUERY, OPTIONAL,
                          TNK__LANE_TRAIN},
    [TNK__ROUTE_GET_KEY] = {"rest", GET, 0, TNK__CALL_QUERY,
                            OPTIONAL | ABOUT_KEY, TNK__LANE_CONTROL},
    [TNK__ROUTE_REVOKE_KEY] = {"rest", TNK__DELETE, 0, TNK__CALL_CHANGE,
                               OPTIONAL | ABOUT_KEY, TNK__LANE_CONTROL},
    [TNK__ROUTE_HOSTED] = {"hosted", 0, 0, TNK__CALL_QUERY, LONG,
                           TNK__LANE_SAMPLE},
    [TNK__ROUTE_COPY_WEIGHTS] = {"rest", 0, 0, TNK__CALL_CHANGE, OPTIONAL,
                                 TNK__LANE_TRAIN},
};

const tnk__route_t *tnk__route(tnk__route_id_t id) {
  return &routes[id];
}

uint64_t tnk__route_bit(const tnk__route_t *route) {
  _Static_assert(TNK__N_ROUTES <= 64, "a set of calls fits into 64 bits");
  return (uint64_t)1 << (route - routes);
}
