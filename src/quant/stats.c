/* Counting. The bins are dense while a batch of values is counted (32-bit counters of all bins, in
 * the second-level cache, most of which stay untouched), and pages of one sign and exponent each
 * where they are kept. */
#include "quant/stats.h"

#include <math.h>

#include "support/number.h"

enum { BLOCK = 4096 }; /* values that are looked at twice while they are in the cache */

/* The bits of floats, read where they are. */
typedef uint32_t __attribute__((may_alias)) Bits;

struct StatsScratch {
  uint32_t counts[STATS_BINS];
  bool touched[STATS_PAGES];
  float low, high;
  uint64_t count;
};

static void scratch_clear_extremes(StatsScratch *s) {
  s->low = INFINITY;
  s->high = -INFINITY;
  s->count = 0;
}

StatsScratch *stats_scratch_new(void) {
  StatsScratch *s = xrealloc(NULL, sizeof *s);
  memset(s, 0, sizeof *s);
  scratch_clear_extremes(s);
  return s;
}

void stats_scratch_free(StatsScratch *scratch) { xfree(scratch); }

void stats_init(Stats *stats, uint32_t channels) {
  *stats = (Stats){.low = INFINITY, .high = -INFINITY, .channels = channels};
  if (channels == 0)
    return;
  stats->channel_low = xrealloc(NULL, channels * sizeof(float));
  stats->channel_high = xrealloc(NULL, channels * sizeof(float));
  for (uint32_t c = 0; c < channels; c++) {
    stats->channel_low[c] = INFINITY;
    stats->channel_high[c] = -INFINITY;
  }
}

void stats_release(Stats *stats) {
  xfree(stats->pages);
  xfree(stats->channel_low);
  xfree(stats->channel_high);
  stats_init(stats, 0);
}

/* --- counting in scratch --- */

/* Floats as integers in the order of the floats, -0 below 0. */
static inline int32_t order_of(uint32_t bits) {
  return (int32_t)(bits ^ (uint32_t)((int32_t)bits >> 31) >> 1);
}

static float float_of(int32_t order) {
  uint32_t bits = (uint32_t)order;
  bits ^= (uint32_t)(order >> 31) >> 1;
  return float_of_bits(bits);
}

enum { ORDER_LOW = -0x7f800000, ORDER_HIGH = 0x7f7fffff }; /* of the finite floats */

/* Least and greatest of bits that are finite; the first loop, which the compiler vectorizes, is
 * enough where all are. */
static void extremes(const Bits *bits, uint64_t count, float *low, float *high) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  for (uint64_t i = 0; i < count; i++) {
    int32_t order = order_of(bits[i]);
    least = order < least ? order : least;
    most = order > most ? order : most;
  }
  if (least < ORDER_LOW || most > ORDER_HIGH) {
    least = INT32_MAX;
    most = INT32_MIN;
    for (uint64_t i = 0; i < count; i++) {
      int32_t order = order_of(bits[i]);
      if (order < ORDER_LOW || order > ORDER_HIGH)
        continue;
      least = order < least ? order : least;
      most = order > most ? order : most;
    }
  }
  if (least > most)
    return;
  *low = fminf(*low, float_of(least));
  *high = fmaxf(*high, float_of(most));
}

static void count_block(StatsScratch *s, const float *values, uint64_t count) {
  const Bits *bits = (const Bits *)values;
  extremes(bits, count, &s->low, &s->high);
  for (uint64_t i = 0; i < count; i++) {
    s->counts[bits[i] >> 16]++;
    s->touched[bits[i] >> 23] = true;
  }
}

void stats_count(StatsScratch *scratch, const float *values, uint64_t count) {
  scratch->count += count;
  for (uint64_t i = 0; i < count; i += BLOCK)
    count_block(scratch, values + i, count - i < BLOCK ? count - i : BLOCK);
}

/* --- pages --- */

static uint64_t *page_of(Stats *stats, uint32_t page) {
  if (!stats->page[page]) {
    size_t size = STATS_PAGE_BINS * sizeof(uint64_t);
    stats->pages = xrealloc(stats->pages, (stats->page_count + 1) * size);
    memset(stats->pages + (size_t)stats->page_count * STATS_PAGE_BINS, 0, size);
    stats->page[page] = (uint16_t)++stats->page_count;
  }
  return stats->pages + (size_t)(stats->page[page] - 1) * STATS_PAGE_BINS;
}

/* 0 for -0, so that a range does not depend on which came first. */
static float without_sign_of_zero(float value) { return value == 0 ? 0 : value; }

static void take_extremes(Stats *stats, float low, float high) {
  stats->low = without_sign_of_zero(fminf(stats->low, low));
  stats->high = without_sign_of_zero(fmaxf(stats->high, high));
}

void stats_flush(Stats *stats, StatsScratch *scratch) {
  for (uint32_t p = 0; p < STATS_PAGES; p++) {
    if (!scratch->touched[p])
      continue;
    uint32_t *from = scratch->counts + (size_t)p * STATS_PAGE_BINS;
    uint64_t *to = page_of(stats, p);
    for (uint32_t i = 0; i < STATS_PAGE_BINS; i++)
      to[i] += from[i];
    memset(from, 0, STATS_PAGE_BINS * sizeof *from);
    scratch->touched[p] = false;
  }
  stats->count += scratch->count;
  take_extremes(stats, scratch->low, scratch->high);
  scratch_clear_extremes(scratch);
}

static void add_few(Stats *stats, const float *values, uint64_t count) {
  const Bits *bits = (const Bits *)values;
  float low = INFINITY, high = -INFINITY;
  for (uint64_t i = 0; i < count; i++)
    page_of(stats, bits[i] >> 23)[bits[i] >> 16 & (STATS_PAGE_BINS - 1)]++;
  extremes(bits, count, &low, &high);
  take_extremes(stats, low, high);
  stats->count += count;
}

void stats_add(Stats *stats, StatsScratch *scratch, const float *values, uint64_t count) {
  if (count <= STATS_FEW) {
    add_few(stats, values, count);
    return;
  }
  while (count) {
    uint64_t part = count < STATS_COUNT_MAX ? count : STATS_COUNT_MAX;
    stats_count(scratch, values, part);
    stats_flush(stats, scratch);
    values += part;
    count -= part;
  }
}

void stats_add_channels(Stats *stats, const float *values, uint64_t outer, uint64_t inner) {
  for (uint64_t i = 0; i < outer; i++)
    for (uint32_t c = 0; c < stats->channels; c++, values += inner) {
      float low = stats->channel_low[c], high = stats->channel_high[c];
      extremes((const Bits *)values, inner, &low, &high);
      stats->channel_low[c] = without_sign_of_zero(low);
      stats->channel_high[c] = without_sign_of_zero(high);
    }
}

void stats_merge_values(Stats *into, const Stats *from) {
  for (uint32_t p = 0; p < STATS_PAGES; p++) {
    if (!from->page[p])
      continue;
    uint64_t *to = page_of(into, p);
    const uint64_t *counts = from->pages + (size_t)(from->page[p] - 1) * STATS_PAGE_BINS;
    for (uint32_t i = 0; i < STATS_PAGE_BINS; i++)
      to[i] += counts[i];
  }
  into->count += from->count;
  take_extremes(into, from->low, from->high);
}

bool stats_merge(Stats *into, const Stats *from) {
  if (into->channels != from->channels)
    return false;
  stats_merge_values(into, from);
  for (uint32_t c = 0; c < into->channels; c++) {
    into->channel_low[c] = fminf(into->channel_low[c], from->channel_low[c]);
    into->channel_high[c] = fmaxf(into->channel_high[c], from->channel_high[c]);
  }
  return true;
}

/* --- reading --- */

uint64_t stats_bin(const Stats *stats, uint32_t bin) {
  uint32_t page = stats->page[bin / STATS_PAGE_BINS];
  return page ? stats->pages[(size_t)(page - 1) * STATS_PAGE_BINS + bin % STATS_PAGE_BINS] : 0;
}

void stats_set_bin(Stats *stats, uint32_t bin, uint64_t values) {
  page_of(stats, bin / STATS_PAGE_BINS)[bin % STATS_PAGE_BINS] = values;
}

uint64_t stats_infinities(const Stats *stats) {
  return stats_bin(stats, STATS_EXPONENT_MAX * STATS_PAGE_BINS) +
         stats_bin(stats, (256 + STATS_EXPONENT_MAX) * STATS_PAGE_BINS);
}

uint64_t stats_nans(const Stats *stats) {
  uint64_t sum = 0;
  for (uint32_t sign = 0; sign < 2; sign++)
    for (uint32_t i = 0; i < STATS_PAGE_BINS; i++)
      sum += stats_bin(stats, (sign * 256 + STATS_EXPONENT_MAX) * STATS_PAGE_BINS + i);
  return sum - stats_infinities(stats);
}
