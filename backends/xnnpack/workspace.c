/* See workspace.h. XNNPACK places values by size, the largest first, and those of one size in the
 * order in which they were defined: each into the smallest gap between the placed ones that live at
 * the same time, or else behind the last of these. It ignores free space below the first live
 * value. In a chain of equal values each is therefore placed above the one before, and the
 * workspace grows. With every other value listed first, these all get offset 0 and the rest lie
 * directly above: two values' worth of memory. Seen in XNNPACK's source as of ExecuTorch 1.4.1, and
 * compared with what it allocates. */
#include "backends/xnnpack/workspace.h"

#include <stdlib.h>

#include "backends/xnnpack/memory.h"
#include "ops/work.h"

enum {
  ALIGNMENT = 64,    /* of values in the workspace */
  TOKEN_BYTES = 8,   /* scale and zero point of a row that is quantized while it runs */
  MOST_ITEMS = 4096, /* beyond, the order stays: XNNPACK itself takes quadratic time */
  MOST_PLACED = 1 << 14
};

typedef struct Life {
  uint32_t first, last; /* nodes from 1; first 0: not in the workspace */
  uint32_t uses;        /* operands of nodes that it is */
  uint32_t base;        /* the value whose memory it shares, itself mostly */
  uint32_t maker, user; /* 1 + the node that makes it, and the last that uses it */
} Life;

/* What is placed. */
typedef struct Item {
  uint64_t bytes, offset;
  uint32_t first, last;
  uint32_t rank; /* the place in the list of values; behind them what nodes pack */
  uint32_t id;   /* of the value, or XR_NONE */
} Item;

typedef struct Plan {
  Item *items; /* by size, the largest first */
  uint32_t count;
  const Item **placed; /* by offset */
  uint32_t placed_count;
  uint64_t end;
} Plan;

/* --- lives --- */

static bool in_workspace(const XrValue *v) { return !v->constant && v->external == XR_NONE; }

static uint64_t bytes_of(const XrValue *v) {
  uint64_t bytes, rows = 1;
  if (!xr_value_bytes(v, &bytes))
    return UINT64_MAX;
  if (v->datatype == XR_QDINT8) {
    for (uint32_t i = 0; i + v->nonbatch_dims < v->rank; i++)
      rows = work_times(rows, v->dims[i]);
    bytes = work_plus(bytes, work_times(rows, TOKEN_BYTES));
  }
  return bytes > UINT64_MAX - ALIGNMENT ? UINT64_MAX : align_up(bytes, ALIGNMENT);
}

static bool is_elementwise(const XrNode *n) {
  XrForm form = xr_form(n->kind);
  return form == XR_FORM_UNARY_NUMBER || form == XR_FORM_RESHAPE ||
         (form == XR_FORM_UNARY && n->kind != XR_GlobalAvgPooling2d) ||
         (form == XR_FORM_BINARY && n->kind != XR_BatchMatrixMultiply);
}

/* Whether XNNPACK makes the limits n a part of the node that makes their operand. */
static bool joins_maker(const XrGraph *x, const XrNode *n, const Life *in) {
  if (n->kind != XR_Clamp || !in->maker || in->uses != 1)
    return false;
  uint32_t kind = x->nodes[in->maker - 1].kind;
  return xr_has(kind, XR_WEIGHTED) || xr_form(kind) == XR_FORM_POOL || kind == XR_Clamp;
}

/* Whether the result of n takes the place of an operand. */
static bool in_place(const XrGraph *x, const XrNode *n, uint32_t operand, const Life *lives) {
  const XrValue *in = &x->values[operand], *out = &x->values[n->output];
  const Life *life = &lives[operand];
  if (!in_workspace(in) || !in_workspace(out) || life->uses != 1 || !lives[life->base].first ||
      life->base == n->output)
    return false;
  return joins_maker(x, n, life) ||
         (is_elementwise(n) && lives[n->output].uses == 1 && bytes_of(in) == bytes_of(out));
}

static void share_place(const XrGraph *x, const XrNode *n, Life *lives) {
  for (uint8_t k = 0; k < n->input_count; k++) {
    if (n->inputs[k] == XR_NONE || !in_place(x, n, n->inputs[k], lives))
      continue;
    Life *base = &lives[lives[n->inputs[k]].base], *out = &lives[n->output];
    base->last = out->last > base->last ? out->last : base->last;
    out->base = lives[n->inputs[k]].base;
    out->first = 0;
    return;
  }
}

/* Padding with zeros before a convolution becomes a part of it: there is no padded value. */
static void drop_padded(const XrGraph *x, const XrNode *n, Life *lives) {
  if (n->kind != XR_StaticConstantPad || n->vector_count != 4 || n->number != 0 || n->first[0] ||
      n->first[3] || n->second[0] || n->second[3])
    return;
  Life *out = &lives[n->output];
  const XrNode *user = out->user ? &x->nodes[out->user - 1] : NULL;
  if (!user || out->uses != 1 || (user->kind != XR_Conv2d && user->kind != XR_DepthwiseConv2d))
    return;
  Life *in = &lives[lives[n->inputs[0]].base];
  in->last = out->last > in->last ? out->last : in->last;
  out->first = 0;
}

static void define(const XrGraph *x, Life *lives, uint32_t value, uint32_t position) {
  if (value == XR_NONE || !in_workspace(&x->values[value]) || lives[value].first)
    return;
  lives[value].first = position;
  if (lives[value].last < position)
    lives[value].last = position;
}

static Life *find_lives(const XrGraph *x, Arena *arena) {
  Life *lives = ARENA_ARRAY(arena, Life, (size_t)x->value_count + 1);
  for (uint32_t id = 0; id < x->value_count; id++)
    lives[id].base = id;
  for (uint32_t i = 0; i < x->node_count; i++) {
    const XrNode *n = &x->nodes[i];
    lives[n->output].maker = i + 1;
    for (uint8_t k = 0; k < n->input_count; k++)
      if (n->inputs[k] != XR_NONE) {
        Life *in = &lives[n->inputs[k]];
        in->uses += in->user != i + 1;
        in->last = in->user = i + 1;
      }
  }
  for (uint32_t i = 0; i < x->node_count; i++) {
    define(x, lives, x->nodes[i].output, i + 1);
    define(x, lives, x->nodes[i].positions, i + 1);
    share_place(x, &x->nodes[i], lives);
    drop_padded(x, &x->nodes[i], lives);
  }
  return lives;
}

/* --- places --- */

static int by_size(const void *a, const void *b) {
  const Item *one = a, *other = b;
  int order = ORDER(other->bytes, one->bytes);
  return order ? order : ORDER(one->rank, other->rank);
}

/* False when there are more than `most`, or when their sizes are too many to count: then they are
 * in no order. */
static bool list_items(const XrGraph *x, const Life *lives, uint32_t most, Arena *arena, Plan *p) {
  uint64_t sum = 0;
  p->items = ARENA_ARRAY(arena, Item, (size_t)x->value_count + x->node_count + 1);
  p->placed = ARENA_ARRAY(arena, const Item *, (size_t)x->value_count + x->node_count + 1);
  for (uint32_t id = 0; id < x->value_count; id++)
    if (lives[id].first && lives[id].base == id)
      p->items[p->count++] = (Item){.bytes = bytes_of(&x->values[id]),
                                    .first = lives[id].first,
                                    .last = lives[id].last,
                                    .rank = x->values[id].position,
                                    .id = id};
  for (uint32_t i = 0; i < x->node_count; i++) {
    uint64_t bytes = xr_packed_each_call(x, &x->nodes[i]);
    if (bytes)
      p->items[p->count++] =
          (Item){.bytes = bytes > UINT64_MAX - ALIGNMENT ? UINT64_MAX : align_up(bytes, ALIGNMENT),
                 .first = i + 1,
                 .last = i + 1,
                 .rank = x->value_count + i,
                 .id = XR_NONE};
  }
  for (uint32_t i = 0; i < p->count; i++)
    sum = work_plus(sum, p->items[i].bytes);
  p->end = sum;
  if (p->count > most || sum == UINT64_MAX)
    return false;
  qsort(p->items, p->count, sizeof *p->items, by_size);
  return true;
}

static bool live_together(const Item *a, const Item *b) {
  return a->first <= b->last && b->first <= a->last;
}

static uint64_t offset_for(const Plan *p, const Item *item) {
  uint64_t end = 0, best = UINT64_MAX, least = UINT64_MAX;
  bool any = false;
  for (uint32_t i = 0; i < p->placed_count; i++) {
    const Item *other = p->placed[i];
    if (!live_together(item, other))
      continue;
    uint64_t gap = other->offset > end ? other->offset - end : 0;
    if (any && gap >= item->bytes && gap < least) {
      least = gap;
      best = end;
    }
    any = true;
    end = other->offset + other->bytes > end ? other->offset + other->bytes : end;
  }
  return best != UINT64_MAX ? best : end;
}

static void place(Plan *p, Item *item, uint64_t offset) {
  uint32_t i = p->placed_count++;
  item->offset = offset;
  for (; i > 0 && p->placed[i - 1]->offset > offset; i--)
    p->placed[i] = p->placed[i - 1];
  p->placed[i] = item;
  p->end = offset + item->bytes > p->end ? offset + item->bytes : p->end;
}

static void place_in_order(Plan *p) {
  p->placed_count = 0;
  p->end = 0;
  for (uint32_t i = 0; i < p->count; i++)
    place(p, &p->items[i], offset_for(p, &p->items[i]));
}

/* Lower, then longer in use, then earlier. */
static bool comes_before(const Item *a, const Item *b) {
  uint32_t length = a->last - a->first, other = b->last - b->first;
  if (a->offset != b->offset)
    return a->offset < b->offset;
  return length != other ? length > other : a->first < b->first;
}

/* Places items[begin, end), which have one size, always the one that comes lowest. They are left in
 * that order. */
static void place_lowest(Plan *p, uint32_t begin, uint32_t end) {
  Item *items = p->items;
  for (uint32_t i = begin; i < end; i++)
    items[i].offset = offset_for(p, &items[i]);
  for (uint32_t at = begin; at < end; at++) {
    uint32_t best = at;
    for (uint32_t i = at + 1; i < end; i++)
      if (comes_before(&items[i], &items[best]))
        best = i;
    Item taken = items[best];
    items[best] = items[at];
    items[at] = taken;
    place(p, &items[at], taken.offset);
    for (uint32_t i = at + 1; i < end; i++)
      if (live_together(&items[i], &taken))
        items[i].offset = offset_for(p, &items[i]);
  }
}

/* What nodes pack is behind values of the same size, wherever those are in their list. */
static void place_by_choice(Plan *p, uint32_t value_count) {
  p->placed_count = 0;
  p->end = 0;
  for (uint32_t begin = 0, end; begin < p->count; begin = end) {
    bool value = p->items[begin].rank < value_count;
    for (end = begin + 1; end < p->count && p->items[end].bytes == p->items[begin].bytes &&
                          value == (p->items[end].rank < value_count);)
      end++;
    if (value)
      place_lowest(p, begin, end);
    else
      for (uint32_t i = begin; i < end; i++)
        place(p, &p->items[i], offset_for(p, &p->items[i]));
  }
}

uint64_t xr_workspace_values(const XrGraph *x, Arena *arena) {
  Plan p = {0};
  if (list_items(x, find_lives(x, arena), MOST_PLACED, arena, &p))
    place_in_order(&p);
  return p.end;
}

/* Values that have no place of their own follow the one whose they share. */
static const uint32_t *listed(const XrGraph *x, const Life *lives, const Plan *p, Arena *arena) {
  uint32_t *order = ARENA_ARRAY(arena, uint32_t, (size_t)x->value_count + 1), count = 0,
           *shares = ARENA_ARRAY(arena, uint32_t, (size_t)x->value_count + 1), /* 1 + id */
               *next = ARENA_ARRAY(arena, uint32_t, (size_t)x->value_count + 1);
  for (uint32_t id = x->value_count; id-- > 0;) {
    if (lives[id].first && lives[id].base == id)
      continue;
    next[id] = shares[lives[id].base];
    shares[lives[id].base] = id + 1;
  }
  for (uint32_t id = 0; id < x->value_count; id++)
    if (!lives[id].first && lives[id].base == id)
      order[count++] = id;
  for (uint32_t i = 0; i < p->count; i++) {
    uint32_t id = p->items[i].id;
    if (id == XR_NONE)
      continue;
    order[count++] = id;
    for (uint32_t s = shares[id]; s; s = next[s - 1])
      order[count++] = s - 1;
  }
  return count == x->value_count ? order : NULL;
}

const uint32_t *xr_value_order(const XrGraph *x, Arena *arena) {
  Plan p = {0};
  const Life *lives = find_lives(x, arena);
  if (!list_items(x, lives, MOST_ITEMS, arena, &p))
    return NULL;
  place_in_order(&p);
  uint64_t now = p.end;
  place_by_choice(&p, x->value_count);
  return p.end < now ? listed(x, lives, &p, arena) : NULL;
}
