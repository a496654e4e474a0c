/* Statistics of the values that a tensor had over a data set, and ranges for quantization from
 * them.
 *
 * A value is counted in the bin that the upper half of its bits as a float32 names (sign, exponent,
 * seven bits of mantissa), and the least and greatest finite values are kept. Counts and extremes
 * do not depend on the order of what was added: every split of a data set merges to the same Stats,
 * and one pass over the data serves every method of choosing a range. */
#ifndef ETC_QUANT_STATS_H
#define ETC_QUANT_STATS_H

#include "ir/dtype.h"
#include "support/arena.h"

enum {
  STATS_PAGE_BINS = 128, /* bins of one sign and exponent */
  STATS_PAGES = 512,
  STATS_BINS = STATS_PAGES * STATS_PAGE_BINS,
  STATS_EXPONENT_MAX = 255 /* infinities and NaN */
};

typedef struct Stats {
  float low, high; /* of the finite values; low > high where there are none */
  uint64_t count;  /* of all values, infinities and NaN too */
  uint64_t *pages; /* page_count of STATS_PAGE_BINS counts */
  uint32_t page_count;
  uint16_t page[STATS_PAGES]; /* by sign and exponent (bits >> 23): 1 + index into pages, 0: all
                                 its counts are 0 */
  uint32_t channels;          /* 0: no extremes by channel */
  float *channel_low, *channel_high; /* of finite values, by channel */
} Stats;

/* Working memory of stats_add, one a thread; about 270 KiB. */
typedef struct StatsScratch StatsScratch;
StatsScratch *stats_scratch_new(void);
/* scratch may be NULL. */
void stats_scratch_free(StatsScratch *scratch);

/* No values; channels > 0 asks for extremes by channel as well. */
void stats_init(Stats *stats, uint32_t channels);
/* Frees the memory of stats, which is as after stats_init(stats, 0). */
void stats_release(Stats *stats);
/* Adds count values. */
void stats_add(Stats *stats, StatsScratch *scratch, const float *values, uint64_t count);
/* Up to so many values are counted where they belong, and scratch is not used. */
enum { STATS_FEW = 1024 };
/* The two halves of stats_add, for a Stats that threads share: values are counted in scratch, and
 * what scratch counted is added to stats; only this needs a lock. count is at most
 * STATS_COUNT_MAX between two stats_flush. */
#define STATS_COUNT_MAX UINT32_MAX
void stats_count(StatsScratch *scratch, const float *values, uint64_t count);
void stats_flush(Stats *stats, StatsScratch *scratch);
/* Extremes by channel of a tensor [outer, channels, inner], which stats_add does not see to;
 * channels is that of stats_init. */
void stats_add_channels(Stats *stats, const float *values, uint64_t outer, uint64_t inner);
/* Adds what from holds to into. False when one has other channels than the other. */
bool stats_merge(Stats *into, const Stats *from);
/* The same without extremes by channel: those of into stay as they are. */
void stats_merge_values(Stats *into, const Stats *from);

/* Number of values in a bin: the upper 16 bits of the values as float32. */
uint64_t stats_bin(const Stats *stats, uint32_t bin);
/* Gives a bin its number of values, without telling stats->count. */
void stats_set_bin(Stats *stats, uint32_t bin, uint64_t values);
/* Number of infinities, and of NaN. */
uint64_t stats_infinities(const Stats *stats);
uint64_t stats_nans(const Stats *stats);

typedef enum RangeMethod {
  RANGE_AUTO,       /* of several by squared error, with more or less cut off, the one that changes
                       the outputs least on samples; without samples as RANGE_MSE */
  RANGE_MINMAX,     /* all values */
  RANGE_PERCENTILE, /* the share of values that is given, the rest cut off */
  RANGE_MSE,        /* least mean squared error of quantization */
  RANGE_ENTROPY     /* least divergence of the quantized distribution from the true one */
} RangeMethod;

typedef struct RangeOptions {
  RangeMethod method;
  double percentile;  /* of RANGE_PERCENTILE: 0 < percentile <= 100; as much is cut off on the left
                         as on the right, or, symmetric, from the absolute values */
  int32_t qmin, qmax; /* qmin < qmax: the quantized values that there are */
  bool symmetric;     /* the zero point is fixed, in the middle of qmin and qmax, rounded up */
  double cut_weight;  /* how often the squared error counts that values outside of the range have
                         beyond that of rounding, of RANGE_MSE and RANGE_AUTO; 0: once */
} RangeOptions;

/* low <= 0 <= high: what quantized values have to stand for. Symmetric: low is -high. */
typedef struct Range {
  double low, high;
} Range;

/* The range that the options ask for; infinities and NaN are left out. {0, 0} where no finite value
 * was counted. The same on every machine. */
Range stats_range(const Stats *stats, const RangeOptions *options);
/* What the names "auto", "min-max", "percentile", "mse" and "entropy" mean; false for others. */
bool range_method_find(StrView name, RangeMethod *method);

#endif
