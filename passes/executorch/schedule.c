/* See schedule.h.
 *
 * What is in use after some nodes have run depends on which ran, not on their order. So orders are
 * built node by node, of those that have run the same nodes the one with the lowest peak is kept,
 * and of all the WIDTH that have least in use (a beam search; with all of them it would be the
 * exact dynamic program of Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of Irregularly
 * Wired Neural Networks for Edge Devices", 2020). Orders whose peak passes a limit are dropped: the
 * limit is below the best peak so far, until nothing is found any more. A node that leaves no more
 * in use than before goes first, without a choice: later it could only free less or as much. */
#include "passes/executorch/schedule.h"

#include "support/random.h"

enum {
  WIDTH = 32,        /* orders kept */
  LEAST_WIDTH = 8,   /* of MANY, with whose square the time grows */
  MANY = 384,        /* nodes */
  CHOICES = 8,       /* nodes tried after each */
  LIMITS = 6,        /* searches, each with a lower limit */
  CLOSE = 512,       /* a peak this part above the bound will do */
  MAX_WORK = 1 << 26 /* bytes copied and nodes looked at, about 25 ms */
};

/* What running a node adds to the bytes in use: while it runs, and afterwards. */
typedef struct Cost {
  int64_t during, after;
} Cost;

/* After some nodes have run. */
typedef struct State {
  uint64_t live, peak;
  uint64_t hash;  /* of the set of nodes that ran */
  uint32_t first; /* the first node that has not run */
  uint32_t ready_count;
  uint16_t *ready;             /* nodes that wait for none; unordered */
  Cost *costs;                 /* of these */
  uint16_t *predecessor_count; /* by node: those that have not run yet; RAN */
  uint16_t *left;              /* by buffer: uses to come */
} State;
#define RAN UINT16_MAX

/* Running a node after a state. */
typedef struct Move {
  uint64_t live, peak, hash;
  uint32_t first, state, node, at; /* node: s->ready[at] */
} Move;

typedef struct Step {
  uint16_t state, node; /* of the level before */
} Step;

typedef struct Beam {
  const ScheduleProblem *p;
  State *states, *next;
  uint32_t count;
  Move moves[CHOICES]; /* after one state, the best first */
  uint32_t move_count;
  Move best[WIDTH]; /* after all of them, the best first; each leads to another set of nodes */
  uint32_t best_count;
  Step *steps; /* WIDTH a level */
  uint64_t limit, work;
  uint32_t width; /* orders kept */
} Beam;

static Cost node_cost(const ScheduleProblem *p, const uint16_t *left, uint32_t node) {
  const ScheduleNode *n = &p->nodes[node];
  uint64_t made = 0, freed = 0, over = 0;
  for (uint32_t i = 0; i < n->define_count; i++) {
    const ScheduleBuffer *b = &p->buffers[n->defines[i]];
    made += b->size;
    freed += b->uses ? 0 : b->size;
  }
  for (uint32_t i = 0; i < n->use_count; i++) {
    uint64_t size = left[n->uses[i].buffer] == 1 ? p->buffers[n->uses[i].buffer].size : 0;
    freed += size;
    over = n->uses[i].in_place && size > over ? size : over;
  }
  over = n->define_count && over > p->buffers[n->defines[0]].size ? p->buffers[n->defines[0]].size
                                                                  : over;
  return (Cost){(int64_t)(made - over), (int64_t)made - (int64_t)freed};
}

static uint64_t begin(const ScheduleProblem *p, uint16_t *left) {
  uint64_t live = p->always;
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    left[i] = (uint16_t)p->buffers[i].uses;
    live += p->buffers[i].given ? p->buffers[i].size : 0;
  }
  return live;
}

uint64_t schedule_peak(const ScheduleProblem *p, const uint32_t *order, Arena *scratch) {
  uint16_t *left = ARENA_ARRAY(scratch, uint16_t, p->buffer_count);
  uint64_t live = begin(p, left), peak = live;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const ScheduleNode *n = &p->nodes[order[i]];
    Cost cost = node_cost(p, left, order[i]);
    uint64_t during = live + (uint64_t)cost.during;
    peak = during > peak ? during : peak;
    live += (uint64_t)cost.after;
    for (uint32_t k = 0; k < n->use_count; k++)
      left[n->uses[k].buffer]--;
  }
  return peak;
}

uint64_t schedule_bound(const ScheduleProblem *p) {
  uint64_t given = 0, most = 0;
  for (uint32_t i = 0; i < p->buffer_count; i++)
    given += p->buffers[i].given ? p->buffers[i].size : 0;
  for (uint32_t k = 0; k < p->node_count; k++) {
    const ScheduleNode *n = &p->nodes[k];
    uint64_t bytes = 0, over = 0;
    for (uint32_t i = 0; i < n->define_count; i++)
      bytes += p->buffers[n->defines[i]].size;
    for (uint32_t i = 0; i < n->use_count; i++) {
      uint64_t size = p->buffers[n->uses[i].buffer].size;
      bytes += size;
      over = n->uses[i].in_place && size > over ? size : over;
    }
    most = bytes - over > most ? bytes - over : most;
  }
  return p->always + (most > given ? most : given);
}

/* --- the beam --- */

/* A number for each node. */
static uint64_t node_hash(uint32_t node) {
  uint64_t state = node * 0x9e3779b97f4a7c15u;
  return random_bits(&state);
}

/* Less in use first; then what is nearer to the order as it was. */
static int compare_moves(const Move *x, const Move *y) {
  int order = ORDER(x->live, y->live);
  order = order ? order : ORDER(y->first, x->first);
  order = order ? order : ORDER(x->hash, y->hash);
  order = order ? order : ORDER(x->peak, y->peak);
  order = order ? order : ORDER(x->state, y->state);
  return order ? order : ORDER(x->node, y->node);
}

/* Among the nodes after one state. */
static bool goes_before(const Move *a, const Move *b) {
  if (a->live != b->live)
    return a->live < b->live;
  return a->first != b->first ? a->first > b->first : a->node < b->node;
}

/* Keeps a move among the best after one state. */
static void keep_move(Beam *b, const Move *m) {
  uint32_t at = b->move_count;
  if (at < CHOICES)
    b->move_count++;
  else if (!goes_before(m, &b->moves[--at]))
    return;
  for (; at > 0 && goes_before(m, &b->moves[at - 1]); at--)
    b->moves[at] = b->moves[at - 1];
  b->moves[at] = *m;
}

/* Keeps a move among the best after all states: of those that lead to the same set of nodes, which
 * stand beside each other, the best one. */
static void keep_best(Beam *b, const Move *m) {
  uint32_t at = b->best_count;
  while (at > 0 && compare_moves(m, &b->best[at - 1]) < 0)
    at--;
  if (at == b->width || (at > 0 && b->best[at - 1].hash == m->hash))
    return;
  uint32_t end = at; /* the place that is given up */
  if (at == b->best_count || b->best[at].hash != m->hash)
    end = b->best_count < b->width ? b->best_count++ : b->width - 1;
  memmove(&b->best[at + 1], &b->best[at], (end - at) * sizeof *b->best);
  b->best[at] = *m;
}

/* Running the kth node that waits for none after state i. */
static Move make_move(const Beam *b, uint32_t i, uint32_t k) {
  const State *s = &b->states[i];
  uint32_t node = s->ready[k], first = s->first;
  uint64_t during = s->live + (uint64_t)s->costs[k].during;
  if (node == first)
    do
      first++;
    while (first < b->p->node_count && s->predecessor_count[first] == RAN);
  return (Move){s->live + (uint64_t)s->costs[k].after,
                during > s->peak ? during : s->peak,
                s->hash, /* that of the node is added to moves that are kept */
                first,
                i,
                node,
                k};
}

/* The nodes to try after state i. */
static void find_moves(Beam *b, uint32_t i) {
  const State *s = &b->states[i];
  int64_t room = (int64_t)(b->limit - s->live);
  b->move_count = 0;
  for (uint32_t k = 0; k < s->ready_count; k++)
    if (s->costs[k].after <= 0 && s->costs[k].during <= room) { /* no choice */
      b->moves[b->move_count++] = make_move(b, i, k);
      return;
    }
  for (uint32_t k = 0; k < s->ready_count; k++)
    if (s->costs[k].during <= room) {
      Move m = make_move(b, i, k);
      keep_move(b, &m);
    }
}

static void add_ready(const ScheduleProblem *p, State *s, uint32_t node) {
  s->ready[s->ready_count] = (uint16_t)node;
  s->costs[s->ready_count++] = node_cost(p, s->left, node);
}

/* All but the one at that place. */
static void copy_ready(const State *in, uint32_t at, State *out) {
  uint32_t behind = in->ready_count - at - 1;
  out->ready_count = in->ready_count - 1;
  memcpy(out->ready, in->ready, at * sizeof *out->ready);
  memcpy(out->ready + at, in->ready + at + 1, behind * sizeof *out->ready);
  memcpy(out->costs, in->costs, at * sizeof *out->costs);
  memcpy(out->costs + at, in->costs + at + 1, behind * sizeof *out->costs);
}

static void apply_move(Beam *b, const Move *m, State *out) {
  const ScheduleProblem *p = b->p;
  const State *in = &b->states[m->state];
  const ScheduleNode *n = &p->nodes[m->node];
  bool last_use = false; /* of a buffer is left: the costs of nodes that wait have changed */
  memcpy(out->predecessor_count, in->predecessor_count,
         p->node_count * sizeof *out->predecessor_count);
  memcpy(out->left, in->left, p->buffer_count * sizeof *out->left);
  out->live = m->live;
  out->peak = m->peak;
  out->hash = m->hash;
  out->first = m->first;
  out->predecessor_count[m->node] = RAN;
  copy_ready(in, m->at, out);
  for (uint32_t i = 0; i < n->use_count; i++)
    last_use |= --out->left[n->uses[i].buffer] == 1;
  for (uint32_t i = 0; last_use && i < out->ready_count; i++)
    out->costs[i] = node_cost(p, out->left, out->ready[i]);
  for (uint32_t i = 0; i < n->successor_count; i++)
    if (--out->predecessor_count[n->successors[i]] == 0)
      add_ready(p, out, n->successors[i]);
}

/* Runs one more node; false when no order is left. */
static bool advance(Beam *b, Step *steps) {
  b->best_count = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    find_moves(b, i);
    for (uint32_t k = 0; k < b->move_count; k++) {
      b->moves[k].hash ^= node_hash(b->moves[k].node);
      keep_best(b, &b->moves[k]);
    }
    b->work += b->states[i].ready_count;
  }
  for (uint32_t i = 0; i < b->best_count; i++) {
    const Move *m = &b->best[i];
    apply_move(b, m, &b->next[i]);
    steps[i] = (Step){(uint16_t)m->state, (uint16_t)m->node};
  }
  b->work += (uint64_t)b->best_count * (b->p->node_count + b->p->buffer_count) * 2;
  State *swap = b->states;
  b->states = b->next;
  b->next = swap;
  b->count = b->best_count;
  return b->count > 0;
}

static void begin_beam(Beam *b) {
  State *s = &b->states[0];
  s->hash = s->first = s->ready_count = 0;
  s->live = s->peak = begin(b->p, s->left);
  for (uint32_t i = 0; i < b->p->node_count; i++) {
    s->predecessor_count[i] = (uint16_t)b->p->nodes[i].predecessor_count;
    if (s->predecessor_count[i] == 0)
      add_ready(b->p, s, i);
  }
  b->count = 1;
}

/* An order whose peak is at most b->limit. */
static bool find_order(Beam *b, uint32_t *order) {
  uint32_t n = b->p->node_count, best = 0;
  begin_beam(b);
  for (uint32_t level = 0; level < n; level++)
    if (b->work > MAX_WORK || !advance(b, b->steps + (size_t)level * WIDTH))
      return false;
  for (uint32_t i = 1; i < b->count; i++)
    if (b->states[i].peak < b->states[best].peak)
      best = i;
  for (uint32_t level = n; level-- > 0;) {
    Step step = b->steps[(size_t)level * WIDTH + best];
    order[level] = step.node;
    best = step.state;
  }
  return true;
}

static State *make_states(const ScheduleProblem *p, Arena *scratch) {
  State *states = ARENA_ARRAY(scratch, State, WIDTH);
  for (uint32_t i = 0; i < WIDTH; i++)
    states[i] = (State){.ready = ARENA_ARRAY(scratch, uint16_t, p->node_count),
                        .costs = ARENA_ARRAY(scratch, Cost, p->node_count),
                        .predecessor_count = ARENA_ARRAY(scratch, uint16_t, p->node_count),
                        .left = ARENA_ARRAY(scratch, uint16_t, p->buffer_count)};
  return states;
}

bool schedule_search_whole(const ScheduleProblem *p, uint64_t enough, Arena *scratch,
                           uint32_t *order, uint64_t *work) {
  uint32_t n = p->node_count, *found = ARENA_ARRAY(scratch, uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    found[i] = i;
  uint64_t low = schedule_bound(p), high = schedule_peak(p, found, scratch);
  bool better = false;
  low = low > enough ? low : enough;
  if (low >= high)
    return false;
  Beam b = {.p = p,
            .states = make_states(p, scratch),
            .next = make_states(p, scratch),
            .steps = ARENA_ARRAY(scratch, Step, (size_t)n * WIDTH),
            .work = *work,
            .width = n < MANY ? WIDTH : LEAST_WIDTH};
  for (unsigned i = 0; i < LIMITS && low + high / CLOSE < high; i++) {
    b.limit = high - 1;
    if (!find_order(&b, found))
      break;
    better = true;
    memcpy(order, found, n * sizeof *order);
    high = schedule_peak(p, order, scratch);
  }
  *work = b.work;
  return better;
}
