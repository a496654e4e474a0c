/* See plan_banks.h.
 *
 * A bank is a knapsack over time: a span takes its bytes for as long as it lives, and is worth the
 * bytes that nodes read and write there. Spans go by worth for each byte and step, those are taken
 * that fit beside the ones before at each time, and then as many of them as the planner finds
 * places for. */
#include "passes/executorch/plan_banks.h"

#include <stdlib.h>

typedef struct Candidate {
  double worth; /* accesses a step */
  uint64_t size;
  uint32_t span;
} Candidate;

typedef struct BankSearch {
  PassContext *p;
  const BankProblem *q;
  Candidate *candidates; /* taken for the present bank */
  uint32_t count;
  uint64_t *live; /* by time: bytes taken */
  Span *spans;    /* of those that are being placed */
  uint64_t *offsets, *best;
} BankSearch;

static int compare_candidates(const void *a, const void *b) {
  const Candidate *x = a, *y = b;
  int order = ORDER(y->worth, x->worth);
  order = order ? order : ORDER(x->size, y->size);
  return order ? order : ORDER(x->span, y->span);
}

/* The candidates among the spans that have no bank yet, best first. */
static void find_candidates(BankSearch *s, const uint32_t *bank) {
  const PlanProblem *all = s->q->all;
  s->count = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const Span *span = &all->spans[i];
    if (bank[i] == UINT32_MAX)
      s->candidates[s->count++] = (Candidate){
          (double)s->q->accesses[i] / ((double)span->last - span->first + 1), span->size, i};
  }
  qsort(s->candidates, s->count, sizeof *s->candidates, compare_candidates);
}

/* Keeps the candidates that fit beside the ones before at each time. */
static void keep_fitting(BankSearch *s, uint64_t capacity) {
  uint32_t kept = 0;
  memset(s->live, 0, ((size_t)s->q->all->end + 1) * sizeof *s->live);
  for (uint32_t i = 0; i < s->count; i++) {
    const Span *span = &s->q->all->spans[s->candidates[i].span];
    bool fits = span->size <= capacity;
    for (uint32_t t = span->first; fits && t <= span->last; t++)
      fits = s->live[t] <= capacity - span->size;
    if (!fits)
      continue;
    for (uint32_t t = span->first; t <= span->last; t++)
      s->live[t] += span->size;
    s->candidates[kept++] = s->candidates[i];
  }
  s->count = kept;
}

static uint64_t peak_of(const BankSearch *s, uint32_t count) {
  uint64_t *live = s->live, most = 0;
  memset(live, 0, ((size_t)s->q->all->end + 1) * sizeof *live);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t t = s->spans[i].first; t <= s->spans[i].last; t++) {
      live[t] += s->spans[i].size;
      most = live[t] > most ? live[t] : most;
    }
  return most;
}

/* Places the first `count` candidates, into s->offsets. */
static Status place_first(BankSearch *s, uint32_t count, uint64_t *total) {
  for (uint32_t i = 0; i < count; i++)
    s->spans[i] = s->q->all->spans[s->candidates[i].span];
  PlanProblem part = {.spans = s->spans,
                      .count = count,
                      .end = s->q->all->end,
                      .bound = peak_of(s, count),
                      .alignment = s->q->all->alignment};
  memset(s->offsets, 0, count * sizeof *s->offsets);
  *total = 0;
  return count ? plan_place(s->p, s->q->planner, &part, s->offsets, total) : STATUS_OK;
}

/* The most candidates, counted from the best, that the planner places within capacity: by halving,
 * as if more never needed less. */
static Status place_most(BankSearch *s, uint64_t capacity, uint32_t *count, uint64_t *total) {
  uint32_t low = 0, high = s->count, tried = s->count;
  uint64_t found;
  *total = 0;
  while (low < high) {
    TRY(place_first(s, tried, &found));
    if (found <= capacity) {
      low = tried;
      *total = found;
      memcpy(s->best, s->offsets, tried * sizeof *s->best);
    } else {
      high = tried - 1;
    }
    tried = low + (high - low + 1) / 2;
  }
  *count = low;
  return STATUS_OK;
}

static Status fill_bank(BankSearch *s, uint32_t b, BankPlan *plan) {
  uint64_t size = s->q->banks[b].size;
  uint32_t count = 0;
  find_candidates(s, plan->bank);
  if (size > s->q->spare) {
    keep_fitting(s, size - s->q->spare);
    TRY(place_most(s, size - s->q->spare, &count, &plan->totals[b]));
  }
  for (uint32_t i = 0; i < count; i++) {
    plan->bank[s->candidates[i].span] = b;
    plan->offsets[s->candidates[i].span] = s->best[i];
  }
  return STATUS_OK;
}

/* What is left, all of it, in the last bank. */
static Status fill_last(BankSearch *s, uint32_t b, BankPlan *plan) {
  find_candidates(s, plan->bank);
  TRY(place_first(s, s->count, &plan->totals[b]));
  for (uint32_t i = 0; i < s->count; i++) {
    plan->bank[s->candidates[i].span] = b;
    plan->offsets[s->candidates[i].span] = s->offsets[i];
  }
  return STATUS_OK;
}

Status plan_banks(PassContext *p, const BankProblem *q, BankPlan *plan) {
  uint32_t count = q->all->count, last = q->bank_count - 1;
  BankSearch s = {.p = p,
                  .q = q,
                  .candidates = ARENA_ARRAY(p->scratch, Candidate, count),
                  .live = ARENA_ARRAY(p->scratch, uint64_t, (size_t)q->all->end + 1),
                  .spans = ARENA_ARRAY(p->scratch, Span, count),
                  .offsets = ARENA_ARRAY(p->scratch, uint64_t, count),
                  .best = ARENA_ARRAY(p->scratch, uint64_t, count)};
  memset(plan->bank, 0xff, count * sizeof *plan->bank);
  for (uint32_t b = 0; b < last; b++)
    TRY(fill_bank(&s, b, plan));
  TRY(fill_last(&s, last, plan));
  uint64_t needed = plan->totals[last] + (plan->totals[last] ? q->spare : 0);
  plan->missing = needed > q->banks[last].size ? needed - q->banks[last].size : 0;
  return STATUS_OK;
}
