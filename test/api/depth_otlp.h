/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_OTLP_H
#define TNK_TEST_API_DEPTH_OTLP_H

/* Rows of test_depth.c for otlp.h. No exporter is open, as no variable asks for
 * one. */

GETS(tnk_otlp_open, tnk_otlp_open(NULL, NULL, NULL, NULL, 0))
GETS(tnk_otlp_close, tnk_otlp_close(NULL, NULL, NULL))
GETS(tnk_otlp_stats, tnk_otlp_stats(NULL, NULL))
GETS(tnk_otlp_event, tnk_otlp_event(NULL, NULL))
GETS(tnk_otlp_begin, tnk_otlp_begin(NULL, NULL, NULL))
GETS(tnk_otlp_end, tnk_otlp_end(NULL, NULL, NULL))
GETS(tnk_otlp_set_parent, tnk_otlp_set_parent(NULL, NULL))
GETS(tnk_otlp_add_source, tnk_otlp_add_source(NULL, NULL, NULL))
GETS(tnk_otlp_remove_source, tnk_otlp_remove_source(NULL, NULL, NULL))
GETS(tnk_otlp_put_numbers, tnk_otlp_put_numbers(NULL, NULL, NULL, 0))
GETS(tnk_otlp_put_histograms, tnk_otlp_put_histograms(NULL, NULL, NULL, 0))

#endif
