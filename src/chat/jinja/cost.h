#ifndef TNK_CHAT_JINJA_COST_H
#define TNK_CHAT_JINJA_COST_H

/*
 * The price list of templates. A rendering pays for each operation before or
 * while it works, and ends with TNK_ETOOBIG when its budget is used up.
 *
 * One unit is 0.1 ns of a processor at 2.5 GHz. Each price is what the worst
 * input costs, rounded up. test_template_cost runs every operation with large
 * inputs and compares what was paid with the work that was counted;
 * fuzz_template_cost looks for others.
 */
enum {
  /* The interpreter. */
  TNK__COST_CONST = 30,      /* a constant in an expression */
  TNK__COST_NODE = 200,      /* a statement, or another node of an expression */
  TNK__COST_CALL = 1000,     /* a filter, test, method, function or macro */
  TNK__COST_GET = 800,       /* a member or item, by [] or by a path */
  TNK__COST_LOOKUP = 2000,   /* an attribute that is no member of a dict */
  TNK__COST_SLOT = 40,       /* a variable set up, or one frame further out */
  TNK__COST_RESOLVE = 500,   /* a name looked for in what the caller gave */
  TNK__COST_ITEM = 250,      /* an item gone through, or put into a list */
  TNK__COST_VALUE = 300,     /* a value compared, or measured for that */
  TNK__COST_FAILURE = 20000, /* a failure that is kept for later */

  /* A byte of text. */
  TNK__COST_COPY = 3,       /* compared, copied, or searched for one byte */
  TNK__COST_HASH = 20,      /* hashed and compared, as the key of a dict */
  TNK__COST_COUNT = 25,     /* looked at for where characters begin */
  TNK__COST_SCAN = 80,      /* taken apart into characters */
  TNK__COST_CLASSIFY = 550, /* ... each asked what it is */
  TNK__COST_CASE = 900,     /* ... each written in another case */
  TNK__COST_ESCAPE = 300,   /* ... each written, perhaps escaped */
  TNK__COST_WRITE = 200,    /* ... each written as it is */

  /* Others. */
  TNK__COST_TRY = 200,      /* a place where a part may begin is compared */
  TNK__COST_SIGMA = 4000,   /* a capital sigma in lower case */
  TNK__COST_DIVIDE = 90000, /* a remainder, or a power, of floats */
  TNK__COST_FLOAT = 120000, /* a float written or read as text */
  TNK__COST_FORMAT = 6000,  /* a field of a format, or of a date */
  TNK__COST_SORT = 30,      /* factor: keys sorted by the writer of JSON */
  TNK__COST_MEMORY = 30     /* a byte of memory that is taken */
};

/* The budget of one rendering. It is worth 0.7 s by the list and at most 0.4 s
 * in fact, because each price is that of the worst input. */
#define TNK__COST_MAX ((uint64_t)7 * 1000 * 1000 * 1000)
/* The budget of the constants of one template, when it is compiled. */
#define TNK__COST_MAX_COMPILE ((uint64_t)1000 * 1000 * 1000)

#endif
