/* Ranges from statistics: values are taken to be spread evenly within their bin.
 *
 * MSE: the squared error of rounding x to a grid of step s is a sawtooth whose integral has a
 * closed form, so the error over all bins costs one evaluation an edge. Entropy follows Migacz,
 * "8-bit Inference with TensorRT" (GTC 2017): the divergence of what is left of a histogram after
 * clipping from the same in as many levels as a quantized value has; zeros, which quantization
 * keeps, are left out. */
#include <math.h>

#include "quant/stats.h"
#include "support/number.h"

/* Histogram with bins of any width: density[i] values per unit within edges[i] .. edges[i + 1]. */
typedef struct Bins {
  double *edges, *density;
  uint32_t count;
  uint64_t zeros, total; /* total: zeros too */
} Bins;

/* The least magnitude whose float32 has these upper 16 bits. */
static double magnitude_of(uint32_t upper) { return (double)float_of_bits(upper << 16); }

enum { MAGNITUDES = STATS_EXPONENT_MAX * STATS_PAGE_BINS, SIGN = 0x8000 };

static void bins_begin(Bins *bins, Arena *arena, uint32_t most) {
  *bins = (Bins){.edges = ARENA_ARRAY(arena, double, 2 * (size_t)most + 2),
                 .density = ARENA_ARRAY(arena, double, 2 * (size_t)most + 1)};
}

/* Values between low and high; between these and what came before there is nothing. A bin without
 * width is made as wide as a float can tell. */
static void bins_append(Bins *bins, double low, double high, uint64_t values) {
  if (values == 0)
    return;
  if (bins->count && low < bins->edges[bins->count])
    low = bins->edges[bins->count];
  if (!(low < high))
    high = low + fabs(low) * 0x1p-23;
  if (bins->count == 0)
    bins->edges[0] = low;
  else if (bins->edges[bins->count] < low)
    bins->edges[++bins->count] = low;
  bins->edges[++bins->count] = high;
  bins->density[bins->count - 1] = (double)values / (high - low);
}

static double clamped(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

static uint32_t bins_used(const Stats *s) {
  uint32_t used = 0;
  for (uint32_t b = 0; b < STATS_PAGE_BINS * s->page_count; b++)
    used += s->pages[b] != 0;
  return used;
}

static double widest(const Stats *s) { return fmax(-(double)s->low, (double)s->high); }

/* All finite values; folded: their magnitudes. Bins at the ends are cut off at the extremes. */
static Bins bins_make(const Stats *s, bool folded, Arena *arena) {
  Bins bins;
  bins_begin(&bins, arena, bins_used(s));
  double low = folded ? 0 : (double)s->low, high = folded ? widest(s) : (double)s->high;
  bins.zeros = bins.total = stats_bin(s, 0) + stats_bin(s, SIGN);
  for (uint32_t m = MAGNITUDES; !folded && m-- > 1;) {
    uint64_t values = stats_bin(s, m | SIGN);
    bins.total += values;
    bins_append(&bins, clamped(-magnitude_of(m + 1), low, high),
                clamped(-magnitude_of(m), low, high), values);
  }
  for (uint32_t m = 1; m < MAGNITUDES; m++) {
    uint64_t values = stats_bin(s, m) + (folded ? stats_bin(s, m | SIGN) : 0);
    bins.total += values;
    bins_append(&bins, clamped(magnitude_of(m), low, high), clamped(magnitude_of(m + 1), low, high),
                values);
  }
  return bins;
}

/* --- percentile --- */

/* The value below which there are `values` of those in bins. */
static double bins_quantile(const Bins *bins, double values) {
  bool zeros_left = bins->zeros > 0;
  for (uint32_t i = 0; i < bins->count; i++) {
    if (zeros_left && bins->edges[i] >= 0) {
      zeros_left = false;
      if (values <= (double)bins->zeros)
        return 0;
      values -= (double)bins->zeros;
    }
    double width = bins->edges[i + 1] - bins->edges[i], here = bins->density[i] * width;
    if (values <= here && here > 0)
      return bins->edges[i] + width * fmax(values, 0) / here;
    values -= here;
  }
  return zeros_left || bins->count == 0 ? 0 : bins->edges[bins->count];
}

static Range range_percentile(const Stats *s, const RangeOptions *o, Arena *arena) {
  Bins bins = bins_make(s, o->symmetric, arena);
  double cut = (double)bins.total * (1 - o->percentile / 100);
  if (o->symmetric) {
    double high = bins_quantile(&bins, (double)bins.total - cut);
    return (Range){-high, high};
  }
  return (Range){bins_quantile(&bins, cut / 2), bins_quantile(&bins, (double)bins.total - cut / 2)};
}

/* --- mean squared error --- */

typedef struct Search {
  Bins bins;
  const RangeOptions *options;
  double *integral; /* by edge */
  Range full;
} Search;

/* The integral of the error up to x, in steps: of (x - n)^2, n the level nearest to x; what is cut
 * off counts `extra` times more. */
static inline double error_integral(double x, double least, double most, double extra) {
  double n = round_small_f64(x);
  n = n < least ? least : n > most ? most : n;
  double rest = x - n, cubed = rest * rest * rest;
  double cut = cubed > 0.125 ? cubed - 0.125 : cubed < -0.125 ? cubed + 0.125 : 0;
  return n / 12 + (cubed + extra * cut) / 3;
}

static int32_t middle(const RangeOptions *o) {
  return (int32_t)(((int64_t)o->qmin + o->qmax + 1) >> 1);
}

static double squared_error(Search *search, Range r) {
  const RangeOptions *o = search->options;
  const Bins *bins = &search->bins;
  double qmin = o->qmin, qmax = o->qmax, zero, step;
  if (o->symmetric) {
    zero = middle(o);
    step = r.high / (qmax - zero);
  } else {
    step = (r.high - r.low) / (qmax - qmin);
    zero = clamped(rint(qmin - r.low / step), qmin, qmax);
  }
  if (!(step > 0))
    return INFINITY;
  double inverse = 1 / step, least = qmin - zero, most = qmax - zero, sum = 0;
  double extra = fmax(o->cut_weight, 1) - 1;
  for (uint32_t i = 0; i <= bins->count; i++)
    search->integral[i] = error_integral(bins->edges[i] * inverse, least, most, extra);
  for (uint32_t i = 0; i < bins->count; i++)
    sum += (search->integral[i + 1] - search->integral[i]) * bins->density[i];
  return sum * step * step * step;
}

/* A range with one side, or both, made narrower. */
static Range narrowed(const Search *search, Range r, bool high_side, double factor) {
  if (search->options->symmetric)
    return (Range){search->full.low * factor, search->full.high * factor};
  if (high_side)
    r.high = search->full.high * factor;
  else
    r.low = search->full.low * factor;
  return r;
}

enum { OCTAVE_STEPS = 6, OCTAVES = 6, REFINEMENTS = 10 };

/* The best factor for one side: from 1 down in even ratios, then between the neighbours of the
 * best.
 */
static Range search_side(Search *search, Range r, bool high_side) {
  double best = 1, least = INFINITY, ratio = exp2(-1.0 / OCTAVE_STEPS), factor = 1;
  for (unsigned i = 0; i <= OCTAVES * OCTAVE_STEPS; i++, factor *= ratio) {
    double error = squared_error(search, narrowed(search, r, high_side, factor));
    if (error < least) {
      least = error;
      best = factor;
    }
  }
  double width = best * (1 - ratio) / 2;
  for (unsigned i = 0; i < REFINEMENTS; i++, width *= 0.6) {
    double sides[2] = {best - width, fmin(best + width, 1)};
    for (unsigned k = 0; k < 2; k++) {
      double error = squared_error(search, narrowed(search, r, high_side, sides[k]));
      if (error < least) {
        least = error;
        best = sides[k];
      }
    }
  }
  return narrowed(search, r, high_side, best);
}

static Range range_mse(const Stats *s, const RangeOptions *o, Range full, Arena *arena) {
  Search search = {.options = o, .full = full, .bins = bins_make(s, o->symmetric, arena)};
  search.integral = ARENA_ARRAY(arena, double, search.bins.count + 1);
  if (o->symmetric)
    return search_side(&search, full, true);
  Range r = full;
  for (unsigned round = 0; round < 2; round++) {
    if (full.high > 0)
      r = search_side(&search, r, true);
    if (full.low < 0)
      r = search_side(&search, r, false);
    if (full.high <= 0 || full.low >= 0)
      break;
  }
  return r;
}

/* --- entropy --- */

enum { LEVELS_MAX = 256, BINS_A_LEVEL = 16 };

typedef struct Histogram {
  double *bins;            /* of one width from 0 on */
  double *sums, *plogp;    /* of the bins before each, sums also of p log p */
  uint32_t *filled, count; /* filled: number of those that are not empty before each */
} Histogram;

/* Histogram of the magnitudes up to `high`, zeros left out. */
static Histogram histogram_make(const Bins *from, double high, uint32_t count, Arena *arena) {
  Histogram h = {.bins = ARENA_ARRAY(arena, double, count),
                 .sums = ARENA_ARRAY(arena, double, count + 1),
                 .plogp = ARENA_ARRAY(arena, double, count + 1),
                 .filled = ARENA_ARRAY(arena, uint32_t, count + 1),
                 .count = count};
  for (uint32_t i = 0; i < from->count; i++) {
    double low = from->edges[i] / high * count, top = from->edges[i + 1] / high * count;
    double each = from->density[i] * high / count;
    uint32_t k = (uint32_t)int_clamped(low, 0, count - 1);
    for (; each > 0 && k < count && k < top; k++)
      h.bins[k] += each * (fmin(top, k + 1) - fmax(low, k));
  }
  for (uint32_t k = 0; k < count; k++) {
    double p = h.bins[k];
    h.sums[k + 1] = h.sums[k] + p;
    h.plogp[k + 1] = h.plogp[k] + (p > 0 ? p * log(p) : 0);
    h.filled[k + 1] = h.filled[k] + (p > 0);
  }
  return h;
}

/* Divergence of the first `kept` bins, the last with all that is clipped, from the same bins in
 * `levels` levels; times and plus what is the same for all. */
static double divergence(const Histogram *h, uint32_t kept, uint32_t levels) {
  double last = h->bins[kept - 1], clipped = h->sums[h->count] - h->sums[kept], sum = 0;
  if (!(last > 0) && clipped > 0)
    return INFINITY;
  for (uint32_t j = 0; j < levels; j++) {
    uint32_t begin = (uint32_t)((uint64_t)j * kept / levels);
    uint32_t end = (uint32_t)((uint64_t)(j + 1) * kept / levels);
    double mass = h->sums[end] - h->sums[begin];
    uint32_t filled = h->filled[end] - h->filled[begin];
    if (mass > 0 && filled)
      sum -= (mass + (end == kept ? clipped : 0)) * log(mass / filled);
  }
  sum += h->plogp[kept];
  if (clipped > 0)
    sum += (last + clipped) * log(last + clipped) - last * log(last);
  return sum / h->sums[h->count] + log(h->sums[kept]);
}

static Range range_entropy(const Stats *s, const RangeOptions *o, Range full, Arena *arena) {
  Bins folded = bins_make(s, true, arena);
  bool one_side = !o->symmetric && (full.low >= 0 || full.high <= 0);
  int64_t levels = (int64_t)o->qmax - o->qmin + 1;
  levels = max_i64(min_i64(one_side ? levels : levels / 2, LEVELS_MAX), 1);
  double high = widest(s), least = INFINITY;
  Histogram h = histogram_make(&folded, high, (uint32_t)levels * BINS_A_LEVEL, arena);
  uint32_t best = h.count, stride = (uint32_t)max_i64(levels / 8, 1);
  for (uint32_t kept = h.count; kept >= (uint32_t)levels && h.sums[h.count] > 0; kept -= stride) {
    double found = divergence(&h, kept, (uint32_t)levels);
    if (found < least) {
      least = found;
      best = kept;
    }
    if (kept < (uint32_t)levels + stride)
      break;
  }
  double limit = best == h.count ? high : high * best / h.count;
  return (Range){fmax(full.low, -limit), fmin(full.high, limit)};
}

/* --- all --- */

Range stats_range(const Stats *stats, const RangeOptions *options) {
  if (stats->low > stats->high)
    return (Range){0, 0};
  Range full = {fmin((double)stats->low, 0), fmax((double)stats->high, 0)}, r = full;
  if (options->symmetric) {
    full.high = widest(stats);
    r.high = full.high = fmax(full.high, 0);
    r.low = full.low = -full.high;
  }
  if (full.low == full.high)
    return full;
  Arena arena = {0};
  switch (options->method) {
  case RANGE_MINMAX:
    break;
  case RANGE_PERCENTILE:
    r = range_percentile(stats, options, &arena);
    break;
  case RANGE_AUTO:
  case RANGE_MSE:
    r = range_mse(stats, options, full, &arena);
    break;
  case RANGE_ENTROPY:
    r = range_entropy(stats, options, full, &arena);
    break;
  }
  arena_release(&arena);
  return (Range){fmin(r.low, 0), fmax(r.high, 0)};
}

bool range_method_find(StrView name, RangeMethod *method) {
  static const char *const names[] = {[RANGE_AUTO] = "auto",
                                      [RANGE_MINMAX] = "min-max",
                                      [RANGE_PERCENTILE] = "percentile",
                                      [RANGE_MSE] = "mse",
                                      [RANGE_ENTROPY] = "entropy"};
  for (unsigned i = 0; i < COUNT_OF(names); i++) {
    if (!sv_eq_str(name, names[i]))
      continue;
    *method = (RangeMethod)i;
    return true;
  }
  return false;
}
