/* Budgets: limits that a program must keep, in a YAML file.
 *
 *     file: 512K
 *     constants: 400K
 *     arena: {total: 320K, sram: 256K}      # by bank of --memory, or by memory id; or one size
 *     kernels: {different: 12, calls: 40}   # or one number: different ones
 *     delegates: {count: 1, code: 64K, memory: 1M}
 *     outside: 3
 *     sqnr: 30dB
 *     time: 20ms
 *     methods: {prefill: {arena: 256K, time: 12ms}}   # of one method alone
 *
 * docs/guide/budgets.md says what each key means. `etc lower --budget` holds the program against it
 * before the file gets its name, `etc size --budget` a program that is there. */
#ifndef ETC_PIPELINE_BUDGET_H
#define ETC_PIPELINE_BUDGET_H

#include "pipeline/session.h"
#include "pte/size.h"

typedef enum BudgetKey {
#define BUDGET_KEY(id, group, name, unit, summary) BUDGET_##id,
#include "pipeline/budget.def"
  BUDGET_KEYS
} BudgetKey;

typedef enum BudgetUnit { BUDGET_BYTES, BUDGET_NUMBER, BUDGET_DB, BUDGET_MS } BudgetUnit;

typedef struct BudgetLimit {
  BudgetKey key;
  StrView name;   /* "arena.sram", of a method "prefill: arena.sram" */
  StrView method; /* empty: the program */
  StrView arena;  /* BUDGET_ARENA: name of a bank or number of an arena */
  double limit;   /* bytes, a number, dB or ms */
  DiagPlace at;
} BudgetLimit;

typedef struct Budget {
  const char *path;
  BudgetLimit *limits;
  uint32_t count;
} Budget;

/* Reads the file. Reported with line and column (DIAG_BUDGET_FILE): what is no YAML, unknown keys
 * (with the nearest), keys that come twice, values of another unit. */
EtcStatus budget_read(Session *s, const char *path, Budget **out);
/* A limit of that key on the method or on the whole program; NULL where the budget has none. */
const BudgetLimit *budget_limit(const Budget *b, BudgetKey key, StrView method);

/* What only lowering knows of a method. */
typedef struct BudgetMeasures {
  double sqnr;       /* dB, the least of its outputs; NaN: not measured */
  const char *worst; /* the nodes that cost most of it */
  double time;       /* ms (budget_time.h) */
  const char *slow;  /* the nodes that take most of it */
} BudgetMeasures;

/* A limit and what the program has. */
typedef struct BudgetRow {
  const BudgetLimit *limit;
  bool known;    /* else why says why not */
  double actual; /* in the unit of the limit */
  bool over;
  const char *why; /* the nodes, tensors or kernels that take most */
} BudgetRow;

typedef struct BudgetResult {
  const Budget *budget;
  BudgetRow *rows;  /* by limit */
  uint32_t over;    /* rows that are */
  uint32_t unknown; /* … whose actual value is not known */
} BudgetResult;

/* What is checked. */
typedef struct BudgetSubject {
  const PteProgram *program;
  const PteSize *size;
  const PteNames *names;          /* as for pte_size */
  const BudgetMeasures *measures; /* of the methods that were lowered, which are the first of the
                                     program; NULL for a program that is only read */
  uint32_t measure_count;
} BudgetSubject;
/* A method or an arena that the program does not have is reported (DIAG_BUDGET_FILE). */
EtcStatus budget_check(Session *s, const Budget *b, const BudgetSubject *of, BudgetResult *out);
/* A table, one line a limit: "arena.sram  256.0 KiB  300.0 KiB  44.0 KiB over  …". */
void budget_text(const BudgetResult *r, StrBuf *out);
/* Writes the same as a member of the current JSON object. */
void budget_json(const BudgetResult *r, JsonWriter *w);
/* DIAG_BUDGET with the table when a limit is passed; else nothing, but with -v the table. */
Status budget_report(Session *s, const BudgetResult *r);

#endif
