/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_REST_H
#define TNK_TEST_API_DEPTH_REST_H

/* Rows of test_depth.c for rest.h, record.h and weights.h. */

GETS(tnk_page_checkpoint, tnk_page_checkpoint(page(s), 0))
GETS(tnk_page_count, tnk_page_count(page(s)))
GETS(tnk_page_end, tnk_page_end(page(s)))
GETS(tnk_page_is_last, tnk_page_is_last(page(s)))
GETS(tnk_page_external_files, tnk_page_external_files(page(s), 0))
GETS(tnk_page_sampler, tnk_page_sampler(page(s), 0))
GETS(tnk_page_session, tnk_page_session(page(s), 0))
GETS(tnk_page_weights_info, tnk_page_weights_info(page(s), 0))
GETS(tnk_page_audit_entry, tnk_page_audit_entry(page(s), 0))
GETS(tnk_page_cost_through_us, tnk_page_cost_through_us(page(s)))
GETS(tnk_page_identity, tnk_page_identity(page(s), 0))
GETS(tnk_page_api_key, tnk_page_api_key(page(s), 0))
GETS(tnk_page_storage, tnk_page_storage(page(s), 0))
GETS(tnk_page_storage_rate, tnk_page_storage_rate(page(s)))
GETS(tnk_page_usage, tnk_page_usage(page(s), 0))
GETS(tnk_page_run, tnk_page_run(page(s), 0))
GETS(tnk_page_total, tnk_page_total(page(s)))

#define PATH "tinker://run/external_weights/a"
GETS(tnk_promise_weights, tnk_promise_weights(s->listed))
KEEPS(tnk_weights_download,
      tnk_weights_download(s->script.service, PATH, "/dev/null/x/a", NULL))
KEEPS(tnk_rest_copy_weights, tnk_rest_copy_weights(s->script.service, NULL))
KEEPS(tnk_rest_delete_checkpoint,
      tnk_rest_delete_checkpoint(s->script.service, PATH))
KEEPS(tnk_rest_export_trace, tnk_rest_export_trace(s->script.service, "id"))
KEEPS(tnk_rest_get_external_files,
      tnk_rest_get_external_files(s->script.service, PATH))
KEEPS(tnk_rest_get_sampler, tnk_rest_get_sampler(s->script.service, "id"))
KEEPS(tnk_rest_get_session,
      tnk_rest_get_session(s->script.service, "id", TNK_SCOPE_OWNED))
KEEPS(tnk_rest_get_weights_info,
      tnk_rest_get_weights_info(s->script.service, PATH))
GETS(tnk_promise_hosted, tnk_promise_hosted(s->settled))
GETS(tnk_hosted_body, tnk_hosted_body(NULL, NULL))
GETS(tnk_hosted_n_events, tnk_hosted_n_events(NULL))
KEEPS(tnk_service_hosted, tnk_service_hosted(s->script.service, NULL))
KEEPS(tnk_rest_list_sessions, tnk_rest_list_sessions(s->script.service, NULL))
KEEPS(tnk_rest_move_session, tnk_rest_move_session(s->script.service, "a", "b"))
KEEPS(tnk_rest_publish_checkpoint,
      tnk_rest_publish_checkpoint(s->script.service, PATH))
KEEPS(tnk_rest_search_sessions,
      tnk_rest_search_sessions(s->script.service, NULL))
KEEPS(tnk_rest_set_checkpoint_ttl,
      tnk_rest_set_checkpoint_ttl(s->script.service, PATH, 0))
KEEPS(tnk_rest_unpublish_checkpoint,
      tnk_rest_unpublish_checkpoint(s->script.service, PATH))
KEEPS(tnk_rest_get_audit_log,
      tnk_rest_get_audit_log(s->script.service, NULL, NULL))
KEEPS(tnk_rest_get_storage, tnk_rest_get_storage(s->script.service, NULL))
KEEPS(tnk_rest_get_usage, tnk_rest_get_usage(s->script.service, 0, 1))
KEEPS(tnk_rest_get_api_key, tnk_rest_get_api_key(s->script.service))
KEEPS(tnk_rest_revoke_api_key, tnk_rest_revoke_api_key(s->script.service))
KEEPS(tnk_rest_whoami, tnk_rest_whoami(s->script.service))
KEEPS(tnk_rest_get_run,
      tnk_rest_get_run(s->script.service, "run", TNK_SCOPE_OWNED))
KEEPS(tnk_rest_list_runs, tnk_rest_list_runs(s->script.service, NULL))
KEEPS(tnk_rest_list_checkpoints,
      tnk_rest_list_checkpoints(s->script.service, NULL))
KEEPS(tnk_rest_list_run_checkpoints,
      tnk_rest_list_run_checkpoints(s->script.service, "run"))
KEEPS(tnk_rest_next_page, tnk_rest_next_page(s->script.service, page(s)))

#endif
