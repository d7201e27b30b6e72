/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_JINJA_COST_H
#define TNK_CHAT_JINJA_COST_H

/*
 * Costs of the operations of templates. A rendering is charged for each
 * operation before or while it works. It fails with TNK_ETOOBIG when its budget
 * is used up.
 *
 * One unit is 0.1 ns of a CPU at 2.5 GHz. Each cost is the cost of the worst
 * input, rounded up. The test test_template_cost runs every operation with
 * large inputs, and compares the charged cost with the counted work. The fuzz
 * target fuzz_template_cost searches for more expensive inputs.
 */
enum {
  /* The interpreter. */
  TNK__COST_CONST = 10,  /* a constant in an expression */
  TNK__COST_NODE = 60,   /* a statement, or any other node of an expression */
  TNK__COST_CALL = 1000, /* call of a filter, test, method, function or macro */
  TNK__COST_MEMBER = 80, /* get a member of a dict by a name of the template */
  TNK__COST_LOOP = 300,  /* get an attribute of `loop` */
  TNK__COST_GET = 800,   /* get a member or item, by [] or by a path */
  TNK__COST_LOOKUP =
      2000,            /* look up an attribute that is not a member of a dict */
  TNK__COST_SLOT = 10, /* set up a variable, or go one frame outward */
  TNK__COST_RESOLVE = 150, /* look up a name in the caller's variables */
  TNK__COST_NEXT = 120,    /* get the next item of a list or range in a loop */
  TNK__COST_ITEM = 250,    /* get the next item otherwise, or append one */
  TNK__COST_VALUE = 150,   /* compare a value, or estimate the cost of that */
  TNK__COST_PRINT = 300,   /* write a value, without the bytes of its texts */
  TNK__COST_FAILURE = 20000, /* store an error for later */

  /* Per byte of text. */
  TNK__COST_COPY = 3,       /* compare, copy, or search for one byte */
  TNK__COST_HASH = 20,      /* hash and compare, as the key of a dict */
  TNK__COST_COUNT = 25,     /* find the start of characters */
  TNK__COST_SCAN = 80,      /* decode characters */
  TNK__COST_CLASSIFY = 550, /* ... and classify each of them */
  TNK__COST_CASE = 900,     /* ... and convert the case of each */
  TNK__COST_ESCAPE = 300,   /* ... and write each, escaped if necessary */
  TNK__COST_WRITE = 200,    /* ... and write each unchanged */

  /* Other operations. */
  TNK__COST_TRY = 200, /* compare at a position where a substring may start */
  TNK__COST_SIGMA = 4000,   /* convert a capital sigma to lower case */
  TNK__COST_DIVIDE = 90000, /* remainder or power of floats */
  TNK__COST_FLOAT = 120000, /* write or read a float as text */
  TNK__COST_FORMAT = 6000,  /* a field of a format, or of a date */
  TNK__COST_SORT = 30,      /* factor for sorting keys in the JSON writer */
  TNK__COST_MEMORY = 8      /* allocate a byte of memory */
};

/* The CPU time of one rendering. Costs are those of data in a cache. Data in
 * main memory may take ten times as long, so the time is measured as well. */
#define TNK__COST_MAX_CPU_NS ((uint64_t)500 * 1000 * 1000)
/* Units that are charged between two measurements of the time: about 1 ms. */
#define TNK__COST_CHECK ((uint64_t)10 * 1000 * 1000)
/* The budget of one rendering, which also holds where the CPU time is not
 * known. It amounts to 2 s according to the costs. Long conversations take
 * about half of the time that they are charged. */
#define TNK__COST_MAX ((uint64_t)20 * 1000 * 1000 * 1000)
/* The budget for the constants of a template at compile time. */
#define TNK__COST_MAX_COMPILE ((uint64_t)1000 * 1000 * 1000)

#endif
