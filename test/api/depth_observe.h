/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_OBSERVE_H
#define TNK_TEST_API_DEPTH_OBSERVE_H

/* Rows of test_depth.c for observe.h. */

GETS(tnk_meter_new, tnk_meter_free(tnk_meter_new(NULL)))
GETS(tnk_meter_event, tnk_meter_event(NULL, NULL))
GETS(tnk_meter_text, tnk_meter_text(NULL, NULL, 0))
GETS(tnk_meter_save, tnk_meter_save(NULL, NULL))
GETS(tnk_meter_free, tnk_meter_free(NULL))
GETS(tnk_numbers_append, tnk_numbers_append(NULL, 0, NULL, 0))
GETS(tnk_observe_each, tnk_observe_each(NULL, NULL))
GETS(tnk_phase_name, tnk_phase_name(TNK_PHASE_SENT))
GETS(tnk_waits_for_name, tnk_waits_for_name(TNK_WAITS_FOR_TURN))
GETS(tnk_trace_open, tnk_trace_open(NULL, NULL, NULL))
GETS(tnk_trace_event, tnk_trace_event(NULL, NULL))
GETS(tnk_trace_close, tnk_trace_close(NULL))

#endif
