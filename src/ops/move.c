/* Strided moves: drop dims of one, merge dims that are contiguous on both sides, then copy runs; a
 * move whose inner dim is contiguous on one side only (a transpose) goes by square tiles, which
 * keeps both sides in the cache. */
#include "ops/move.h"

#include "support/parallel.h"

enum { TILE = 32, PARALLEL_BYTES = 1 << 20, GRAIN_BYTES = 1 << 16 };

typedef struct Axis {
  int64_t count, dst, src; /* strides in bytes */
} Axis;

typedef struct Move {
  unsigned element;
  uint32_t outer; /* axes that are walked; the rest is one run or tile */
  Axis axes[MOVE_MAX_RANK + 1];
  Axis run;  /* innermost */
  Axis tile; /* count 0: no tiles. Otherwise the whole second axis; axes[outer - 1] walks its tiles
              */
  char *dst;
  const char *src;
} Move;

static void run_1(char *d, const char *s, const Axis *a) {
  for (int64_t i = 0; i < a->count; i++)
    d[i * a->dst] = s[i * a->src];
}

static void run_2(char *d, const char *s, const Axis *a) {
  for (int64_t i = 0; i < a->count; i++)
    memcpy(d + i * a->dst, s + i * a->src, 2);
}

static void run_4(char *d, const char *s, const Axis *a) {
  for (int64_t i = 0; i < a->count; i++)
    memcpy(d + i * a->dst, s + i * a->src, 4);
}

static void run_8(char *d, const char *s, const Axis *a) {
  for (int64_t i = 0; i < a->count; i++)
    memcpy(d + i * a->dst, s + i * a->src, 8);
}

static void move_run(unsigned element, char *d, const char *s, const Axis *a) {
  if (a->dst == element && a->src == element) {
    memcpy(d, s, (size_t)a->count * element);
    return;
  }
  switch (element) {
  case 1:
    run_1(d, s, a);
    break;
  case 2:
    run_2(d, s, a);
    break;
  case 4:
    run_4(d, s, a);
    break;
  case 8:
    run_8(d, s, a);
    break;
  default:
    BUG("element of %u bytes", element);
  }
}

/* One band of TILE rows of the second axis, cut into tiles along the inner one. A tile goes through
 * a buffer, so that each side is touched in runs: strides that are powers of two would otherwise
 * push each other out of the cache. */
static void move_tiles(const Move *m, char *d, const char *s, int64_t band) {
  char buffer[TILE * TILE * 8];
  int64_t element = (int64_t)m->element, row = TILE * element;
  int64_t rows = min_i64(TILE, m->tile.count - band * TILE);
  for (int64_t c = 0; c < m->run.count; c += TILE) {
    Axis inner = {min_i64(TILE, m->run.count - c), m->run.dst, row};
    for (int64_t i = 0; i < inner.count; i++)
      memcpy(buffer + i * row, s + (c + i) * m->run.src, (size_t)(rows * element));
    for (int64_t r = 0; r < rows; r++)
      move_run(m->element, d + c * m->run.dst + r * m->tile.dst, buffer + r * element, &inner);
  }
}

static void move_body(void *user, size_t begin, size_t end) {
  const Move *m = user;
  int64_t index[MOVE_MAX_RANK + 1] = {0};
  int64_t rest = (int64_t)begin;
  int64_t d = 0, s = 0;
  for (uint32_t a = m->outer; a-- > 0;) {
    index[a] = rest % m->axes[a].count;
    rest /= m->axes[a].count;
    d += index[a] * m->axes[a].dst;
    s += index[a] * m->axes[a].src;
  }
  for (size_t i = begin; i < end; i++) {
    if (m->tile.count)
      move_tiles(m, m->dst + d, m->src + s, index[m->outer - 1]);
    else
      move_run(m->element, m->dst + d, m->src + s, &m->run);
    for (uint32_t a = m->outer; a-- > 0;) {
      d += m->axes[a].dst;
      s += m->axes[a].src;
      if (++index[a] < m->axes[a].count)
        break;
      d -= m->axes[a].count * m->axes[a].dst;
      s -= m->axes[a].count * m->axes[a].src;
      index[a] = 0;
    }
  }
}

/* Fills m->axes with the merged axes, outermost first; false when nothing is to be moved. */
static bool merge_axes(Move *m, uint32_t rank, const int64_t *dims, const int64_t *dst,
                       const int64_t *src) {
  int64_t element = (int64_t)m->element;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] <= 0)
      return false;
    if (dims[i] == 1)
      continue;
    Axis axis = {dims[i], dst[i] * element, src[i] * element};
    Axis *last = m->outer ? &m->axes[m->outer - 1] : NULL;
    if (last && last->dst == axis.count * axis.dst && last->src == axis.count * axis.src) {
      last->count *= axis.count;
      last->dst = axis.dst;
      last->src = axis.src;
    } else {
      m->axes[m->outer++] = axis;
    }
  }
  return true;
}

/* Takes the axis along which the source is contiguous out of the walk and makes it the rows of
 * tiles. */
static void plan_tiles(Move *m) {
  for (uint32_t a = 0; a < m->outer; a++) {
    Axis axis = m->axes[a];
    if (axis.src != m->element || axis.count < 8 || m->run.count < 8)
      continue;
    memmove(&m->axes[a], &m->axes[a + 1], (m->outer - a - 1) * sizeof m->axes[0]);
    m->tile = axis;
    m->axes[m->outer - 1] =
        (Axis){(axis.count + TILE - 1) / TILE, axis.dst * TILE, axis.src * TILE};
    return;
  }
}

void move_elements(unsigned element, uint32_t rank, const int64_t *dims, MoveSide dst,
                   MoveSide src) {
  Move m = {.element = element, .dst = dst.data, .src = src.data};
  if (rank > MOVE_MAX_RANK)
    BUG("move of rank %u", rank);
  if (!merge_axes(&m, rank, dims, dst.strides, src.strides))
    return;
  if (m.outer)
    m.run = m.axes[--m.outer];
  else
    m.run = (Axis){1, element, element};
  if (m.run.dst == element && m.run.src != element && m.run.src != 0)
    plan_tiles(&m);
  size_t items = 1;
  for (uint32_t a = 0; a < m.outer; a++)
    items *= (size_t)m.axes[a].count;
  size_t bytes =
      (size_t)m.run.count * element * (m.tile.count ? (size_t)min_i64(TILE, m.tile.count) : 1);
  if (items > 1 && bytes >= PARALLEL_BYTES / items)
    parallel_for(items, bytes >= GRAIN_BYTES ? 1 : GRAIN_BYTES / bytes, move_body, &m);
  else
    move_body(&m, 0, items);
}

void move_fill(unsigned element, void *dst, const void *value, int64_t count) {
  Axis axis = {count, element, 0};
  if (element == 1)
    memset(dst, *(const unsigned char *)value, (size_t)count);
  else
    move_run(element, dst, value, &axis);
}

MoveSide move_side(const Tensor *t) {
  MoveSide side = {.data = t->data};
  strides_of(t, side.strides);
  return side;
}

Walk walk_make(uint32_t rank, const int64_t *dims) {
  Walk w = {.rank = rank};
  memcpy(w.dims, dims, rank * sizeof *dims);
  return w;
}

void walk_next(Walk *w) {
  for (uint32_t i = w->rank; i-- > 0;) {
    w->first += w->first_strides[i];
    w->second += w->second_strides[i];
    if (++w->index[i] < w->dims[i])
      return;
    w->first -= w->dims[i] * w->first_strides[i];
    w->second -= w->dims[i] * w->second_strides[i];
    w->index[i] = 0;
  }
}

Status kernel_dim(Kernel *k, int64_t dim, uint32_t rank, uint32_t *out) {
  int64_t limit = rank ? rank : 1;
  if (dim < -limit || dim >= limit)
    return kernel_error(k, "dim %lld is out of range for a tensor of rank %u", (long long)dim,
                        rank);
  *out = (uint32_t)wrap_dim(dim, (uint32_t)limit);
  return STATUS_OK;
}

Status kernel_expect(Kernel *k, uint32_t i, uint32_t rank, const int64_t *dims) {
  const Tensor *r = k->results[i];
  if (dims_same(r->dims, r->rank, dims, rank))
    return STATUS_OK;
  for (uint32_t d = 0; r->rank == rank && d < rank; d++)
    if (r->dims[d] != dims[d])
      return kernel_error(k, "dim %u of the result has size %lld, but the type says %lld", d,
                          (long long)dims[d], (long long)r->dims[d]);
  return kernel_error(k, "the result has rank %u, but the type says %u", rank, r->rank);
}

Status kernel_expect_dtype(Kernel *k, const Tensor *t) {
  if (t->dtype == k->results[0]->dtype)
    return STATUS_OK;
  return kernel_error(k, "operand of dtype %s, result of dtype %s", dtype_name(t->dtype),
                      dtype_name(k->results[0]->dtype));
}

Status kernel_expect_like(Kernel *k, const Tensor *t) {
  TRY(kernel_expect(k, 0, t->rank, t->dims));
  return kernel_expect_dtype(k, t);
}
