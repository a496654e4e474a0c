/* The backend xnnpack: partitions that XNNPACK supports as a whole.
 *
 * Whether it supports a node is asked of the code that lowers it (lower.h). The nodes that it
 * supports are numbered by how many changes between it and the portable kernels lie before them at
 * least; those of one number make one partition, so there are as few as the dependencies allow and
 * none depends on itself. Parts that are equal but for activations become partitions of their own
 * afterwards (repeat.h). */
#include "backends/selection.h"
#include "backends/xnnpack/blob.h"
#include "backends/xnnpack/delegate.h"
#include "backends/xnnpack/plan.h"
#include "backends/xnnpack/repeat.h"

#include <math.h>

#include "ir/size_source.h"
#include "ir/transform.h"
#include "support/text.h"

enum { SET_MIN_OPS, SET_OPS, SET_SKIP, SET_MIN_SHARED, SET_CPU }; /* rows of settings */

enum { MAX_ROUNDS = 16, MAX_DIVISIONS = 64, MAX_TRIALS = 256 };

typedef struct Partitioner {
  BackendContext *c;
  Graph *g;
  XnnLowering l;
  bool *delegated;        /* by NodeId */
  uint32_t *partition_of; /* by NodeId: number of its partition, or of the last one before it */
  SymInt *guard;          /* by NodeId, of those that are delegated: see xl_guard */
  bool guarded;           /* some have one */
  double *spent, *saved;  /* by partition: see estimate.h */
  uint32_t rounds;        /* how often all partitions were tried */
  uint32_t divisions;     /* how often one was divided at repeats to try it */
} Partitioner;

/* --- which nodes --- */

/* Whether the user lets the backend have the node. */
static bool wanted(Partitioner *p, NodeId n) {
  StrView ops = p->c->settings[SET_OPS], skip = p->c->settings[SET_SKIP],
          skipped = selection_of_node(skip, p->g, n);
  if (skipped.size)
    return xl_refuse(&p->l, XNN_RULE_SETTING_SKIP, R_TEXT("skip", skipped));
  return ops.size == 0 || selection_of_node(ops, p->g, n).size ||
         xl_refuse(&p->l, XNN_RULE_SETTING_OPS, R_TEXT("ops", ops));
}

/* Leaves out what was refused last, which is n, or a view whose result n cannot take. Lowering can
 * go on behind it. */
static void leave_out(Partitioner *p, NodeId n) {
  n = p->l.blame ? p->l.blame : n;
  p->delegated[n] = false;
  p->c->refusals[n] = p->l.refusal;
  p->l.refusal = (Refusal){0};
  p->l.blame = 0;
}

/* A dequantized constant: nodes that take weights take its codes, so it stays outside and is
 * nobody's operand in the end. */
static bool is_weight(const Graph *g, NodeId n) {
  return is_dequantize(g, n) && dequantized_constant(g, node_result(g, n, 0));
}

static void try_nodes(Partitioner *p) {
  selection_warn_unused(p->c->sink, "--backend", "ops", p->c->settings[SET_OPS], p->g);
  selection_warn_unused(p->c->sink, "--backend", "skip", p->c->settings[SET_SKIP], p->g);
  for (FOR_NODES(p->g, n)) {
    xl_reset(&p->l, true);
    p->l.alone = true;
    if (is_weight(p->g, n)) {
      p->c->refusals[n] = (Refusal){0};
      continue;
    }
    p->delegated[n] =
        !op_has_trait(p->g->nodes[n].op, OP_CONTROL) && xl_node(&p->l, n) && wanted(p, n);
    p->c->refusals[n] = p->l.refusal;
  }
  xl_reset(&p->l, true);
}

/* Which calls of delegates are left out when sizes are 0: a delegate has one guard. */
static void find_guards(Partitioner *p) {
  for (FOR_NODES(p->g, n)) {
    p->guard[n] = 1;
    if (p->delegated[n])
      (void)xl_guard(p->g, n, &p->guard[n]);
    p->guarded |= !sym_is_const(p->guard[n]);
  }
}

/* Numbers node n behind one that it depends on. */
static void number_behind(Partitioner *p, NodeId n, NodeId def) {
  bool together = p->delegated[def] && p->guard[def] == p->guard[n];
  uint32_t least = p->partition_of[def] + (p->delegated[n] && !together);
  p->partition_of[n] = least > p->partition_of[n] ? least : p->partition_of[n];
}

/* Numbers all nodes. A marker of control flow begins anew: partitions do not reach over it. */
static void number_nodes(Partitioner *p) {
  Graph *g = p->g;
  SizeSources sizes = size_sources(g, p->c->scratch);
  uint32_t base = 0, most = 0;
  for (FOR_NODES(g, n)) {
    if (op_has_trait(g->nodes[n].op, OP_CONTROL))
      base = most;
    p->partition_of[n] = base + (p->delegated[n] ? 1 : 0);
    FOR_OPERANDS(g, n, v, {
      NodeId def = v ? value_def(g, v) : 0;
      if (def && !is_weight(g, def))
        number_behind(p, n, def);
    })
    size_sources_of(&sizes, n);
    for (uint32_t i = 0; i < sizes.count; i++)
      number_behind(p, n, sizes.found[i]);
    most = p->partition_of[n] > most ? p->partition_of[n] : most;
  }
}

/* The largest number of a partition. */
static uint32_t last_partition(const Partitioner *p) {
  uint32_t last = 0;
  for (FOR_NODES(p->g, n))
    last = p->partition_of[n] > last ? p->partition_of[n] : last;
  return last;
}

/* Divides partitions of one number by their guards; they do not depend on each other. */
static void divide_by_guards(Partitioner *p) {
  Graph *g = p->g;
  uint32_t last = last_partition(p), count = 0;
  NodeId *first = ARENA_ARRAY(p->c->scratch, NodeId, (size_t)last + 1), /* of the number */
      *next = ARENA_ARRAY(p->c->scratch, NodeId, g->node_count); /* first node of the next guard */
  uint32_t *number = ARENA_ARRAY(p->c->scratch, uint32_t, g->node_count); /* by first node */
  for (FOR_NODES(g, n)) {
    if (!p->delegated[n])
      continue;
    NodeId *of = &first[p->partition_of[n]];
    while (*of && p->guard[*of] != p->guard[n])
      of = &next[*of];
    if (!*of) {
      *of = n;
      number[n] = ++count;
    }
    number[n] = number[*of];
  }
  for (FOR_NODES(g, n))
    p->partition_of[n] = number[n];
}

/* Leaves partitions out that would only move elements, which passes that come later may do away
 * with. Returns whether there were any. */
static bool drop_copies(Partitioner *p) {
  Graph *g = p->g;
  bool *worth = ARENA_ARRAY(p->c->scratch, bool, (size_t)last_partition(p) + 1), dropped = false;
  for (FOR_NODES(g, n))
    if (p->delegated[n] && xl_work(g->nodes[n].op) > XNN_WORK_ORDER)
      worth[p->partition_of[n]] = true;
  for (FOR_NODES(g, n)) {
    if (!p->delegated[n] || worth[p->partition_of[n]])
      continue;
    p->delegated[n] = false;
    p->c->refusals[n] = xl_refusal(XNN_RULE_ONLY_COPIES);
    dropped = true;
  }
  return dropped;
}

/* Leaves partitions out that are not worth the call. Returns whether there were any. Each time may
 * set others free that are small: rounds must not grow with the graph. */
static bool drop_unprofitable(Partitioner *p) {
  Graph *g = p->g;
  bool dropped = false;
  for (FOR_NODES(g, n)) {
    double spent = p->spent[p->partition_of[n]], saved = p->saved[p->partition_of[n]];
    if (!p->delegated[n] || saved * XNN_DOUBT >= spent || p->rounds > MAX_ROUNDS)
      continue;
    xl_refuse(&p->l, XNN_RULE_NO_GAIN, R_INT("spent", llround(spent)),
              R_INT("saved", llround(saved)));
    leave_out(p, n);
    dropped = true;
  }
  return dropped;
}

/* Leaves partitions out that are smaller than the user wants, or without that wish those that are
 * not worth the call. Returns whether there were any. */
static bool drop_small(Partitioner *p) {
  Graph *g = p->g;
  uint64_t least = 0;
  if (!text_parse_u64(p->c->settings[SET_MIN_OPS], &least))
    return !p->c->whole && drop_unprofitable(p);
  uint32_t *nodes = ARENA_ARRAY(p->c->scratch, uint32_t, (size_t)last_partition(p) + 1);
  bool dropped = false;
  for (FOR_NODES(g, n))
    nodes[p->partition_of[n]] += p->delegated[n];
  for (FOR_NODES(g, n)) {
    if (!p->delegated[n] || nodes[p->partition_of[n]] >= least)
      continue;
    xl_refuse(&p->l, XNN_RULE_SETTING_MIN_OPS, R_INT("nodes", nodes[p->partition_of[n]]),
              R_INT("min-ops", (int64_t)least));
    leave_out(p, n);
    dropped = true;
  }
  return dropped;
}

/* --- one partition --- */

static void plan(XnnLowering *l, const Partition *partition) {
  xl_plan(l, partition->nodes, partition->node_count, partition->outputs, partition->output_count);
}

/* Some views whose dims may be stored unmerged. */
static bool has_dynamic_views(const Graph *g, const Partition *partition) {
  for (uint32_t i = 0; i < partition->node_count; i++)
    if (xl_layouts(node_cget(g, partition->nodes[i])->op) == XL_VIEW &&
        xl_dynamic_dim_count(g, node_value(g, partition->nodes[i], 0)) > 1)
      return true;
  return false;
}

/* The first node that is refused in a trial, or makes an output that is; 0: none. */
static NodeId first_refused(XnnLowering *l, const Partition *partition) {
  xl_reset(l, true);
  plan(l, partition);
  for (uint32_t i = 0; i < partition->node_count; i++)
    if (!xl_node(l, partition->nodes[i]))
      return partition->nodes[i];
  for (uint32_t i = 0; i < partition->output_count; i++)
    if (xl_plain(l, partition->outputs[i]) == XNN_NONE)
      return value_def(l->g, partition->outputs[i]);
  return 0;
}

/* Finds out by trials which views have to join their dims. The first node that is refused all the
 * same, 0: none. What is behind such a node tells nothing. */
static NodeId find_joins(XnnLowering *l, const Partition *partition) {
  l->join_count = 0;
  if (!has_dynamic_views(l->g, partition))
    return 0;
  NodeId refused = first_refused(l, partition);
  while (refused && (xl_join_at_blamed(l) || xl_join_late(l, refused)))
    refused = first_refused(l, partition);
  return refused;
}

static bool lower_all(XnnLowering *l, const Partition *partition) {
  bool trial = l->trial;
  (void)find_joins(l, partition);
  xl_reset(l, trial);
  plan(l, partition);
  for (uint32_t i = 0; i < partition->node_count; i++) {
    l->x.debug_handle = i + 1;
    if (!xl_node(l, partition->nodes[i]))
      return false;
  }
  for (uint32_t i = 0; i < partition->output_count; i++)
    (void)xl_plain(l, partition->outputs[i]); /* inputs that it needs come before all outputs */
  for (uint32_t i = 0; i < partition->output_count; i++)
    xl_output(l, partition->outputs[i]);
  return xl_ok(l);
}

static void collect_outputs(Graph *g, const uint32_t *change, const bool *delegated, NodeId n,
                            ValueId *outputs, uint32_t *count) {
  for (uint32_t i = 0; i < g->nodes[n].result_count; i++) {
    ValueId v = node_result(g, n, i);
    for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
      NodeId user = g->uses[u].node;
      if (user != NODE_OUTPUT && delegated[user] && change[user] == change[n])
        continue;
      outputs[(*count)++] = v;
      break;
    }
  }
}

static void check_operands(XnnLowering *l) {
  if (l->x.extern_count > XNN_MAX_EXTERNS)
    xl_refuse(l, XNN_RULE_OPERAND_LIMIT, R_INT("operands", l->x.extern_count),
              R_INT("most", XNN_MAX_EXTERNS));
}

/* Leaves out views whose dims can neither stay unmerged nor be merged, and takes them from the
 * nodes of the partition; false when there were any. */
static bool settle_views(Partitioner *p, Partition *partition) {
  NodeId *nodes = ARENA_ARRAY(p->c->scratch, NodeId, partition->node_count), refused;
  memcpy(nodes, partition->nodes, partition->node_count * sizeof *nodes);
  partition->nodes = nodes;
  bool whole = true;
  for (uint32_t i = 0; i < MAX_TRIALS && (refused = find_joins(&p->l, partition)); i++) {
    leave_out(p, refused);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < partition->node_count; k++)
      if (p->delegated[nodes[k]])
        nodes[kept++] = nodes[k];
    partition->node_count = kept;
    whole = false;
  }
  return whole;
}

/* Lowers a partition without looking at constants. Nodes that are refused in company, though not
 * alone, are left out, and those behind them take their results from outside; false then. */
static bool try_partition(Partitioner *p, Partition *partition) {
  bool whole = settle_views(p, partition);
  xl_reset(&p->l, true);
  plan(&p->l, partition);
  for (uint32_t i = 0; i < partition->node_count; i++) {
    if (xl_node(&p->l, partition->nodes[i]))
      check_operands(&p->l);
    if (xl_ok(&p->l))
      continue;
    leave_out(p, partition->nodes[i]);
    whole = false;
  }
  for (uint32_t i = 0; i < partition->output_count; i++) {
    NodeId n = value_def(p->g, partition->outputs[i]);
    if (!p->delegated[n])
      continue;
    xl_output(&p->l, partition->outputs[i]);
    check_operands(&p->l);
    if (xl_ok(&p->l))
      continue;
    leave_out(p, n);
    whole = false;
  }
  return whole;
}

static void give_up(Partitioner *p, NodeId n) {
  if (p->delegated[n])
    p->c->refusals[n] = xl_refusal(XNN_RULE_COMPANY);
  p->delegated[n] = false;
}

static void estimate(Partitioner *p, uint32_t number, const Partition *partition) {
  p->spent[number] = xnn_spent(&p->l.x);
  for (uint32_t i = 0; i < partition->node_count; i++) {
    NodeId n = partition->nodes[i];
    p->saved[number] += xnn_saved(p->g, n, xl_work(p->g->nodes[n].op));
  }
}

/* The nodes of all partitions, sorted by partition: those of number i from first[i] to
 * first[i + 1]. outputs has room for those of one. */
typedef struct PartitionList {
  NodeId *nodes;
  ValueId *outputs;
  uint32_t *first, last;
} PartitionList;

static PartitionList list_partitions(const Partitioner *p) {
  Graph *g = p->g;
  Arena *a = p->c->scratch;
  uint32_t results = 0;
  PartitionList list = {.last = last_partition(p)};
  for (FOR_NODES(g, n))
    results += g->nodes[n].result_count;
  list.nodes = ARENA_ARRAY(a, NodeId, g->live_nodes);
  list.outputs = ARENA_ARRAY(a, ValueId, results);
  list.first = ARENA_ARRAY(a, uint32_t, list.last + 2);
  for (FOR_NODES(g, n))
    if (p->delegated[n])
      list.first[p->partition_of[n] + 1]++;
  for (uint32_t i = 1; i < list.last + 2; i++)
    list.first[i] += list.first[i - 1];
  uint32_t *at = ARENA_ARRAY(a, uint32_t, list.last + 1);
  for (FOR_NODES(g, n))
    if (p->delegated[n])
      list.nodes[list.first[p->partition_of[n]] + at[p->partition_of[n]]++] = n;
  return list;
}

/* Until the next one is asked for. */
static Partition partition_of(const Partitioner *p, const PartitionList *list, uint32_t number) {
  Partition part = {.nodes = list->nodes + list->first[number],
                    .node_count = list->first[number + 1] - list->first[number],
                    .outputs = list->outputs};
  for (uint32_t k = 0; k < part.node_count; k++)
    collect_outputs(p->g, p->partition_of, p->delegated, part.nodes[k], list->outputs,
                    &part.output_count);
  return part;
}

/* Tries all partitions once; false when something was left out. A partition that still loses nodes
 * after many rounds is given up as a whole: rounds must not grow with the graph. */
static bool try_partitions(Partitioner *p) {
  PartitionList list = list_partitions(p);
  p->spent = ARENA_ARRAY(p->c->scratch, double, (size_t)list.last + 1);
  p->saved = ARENA_ARRAY(p->c->scratch, double, (size_t)list.last + 1);
  bool whole = true;
  for (uint32_t i = 1; i <= list.last; i++) {
    Partition part = partition_of(p, &list, i);
    if (try_partition(p, &part)) {
      estimate(p, i, &part);
      continue;
    }
    whole = false;
    for (uint32_t k = 0; k < part.node_count && p->rounds > MAX_ROUNDS; k++)
      give_up(p, part.nodes[k]);
  }
  p->rounds++;
  return whole;
}

/* --- equal parts --- */

/* Gives partition `number` the parts of repeat_divide: the first keeps the number, the others
 * follow `last`. */
static void number_parts(const Partitioner *p, const Partition *whole, const uint32_t *part,
                         uint32_t number, uint32_t last) {
  for (uint32_t k = 0; k < whole->node_count; k++)
    p->partition_of[whole->nodes[k]] = part[k] ? last + part[k] : number;
}

/* What the calls of the parts cost; infinite where XNNPACK does not support one, or min-ops is
 * more. */
static double spent_on_parts(Partitioner *p, uint32_t number, uint32_t last) {
  PartitionList list = list_partitions(p);
  uint64_t least = 0;
  double spent = 0;
  (void)text_parse_u64(p->c->settings[SET_MIN_OPS], &least);
  for (uint32_t i = number; i <= list.last; i = i == number ? last + 1 : i + 1) {
    Partition part = partition_of(p, &list, i);
    xl_reset(&p->l, true);
    if (part.node_count < least || !lower_all(&p->l, &part))
      return INFINITY;
    check_operands(&p->l);
    if (!xl_ok(&p->l))
      return INFINITY;
    spent += xnn_spent(&p->l.x);
  }
  return spent;
}

/* Whether further calls that cost so much are worth the bytes that are packed once. */
static bool is_worth_calls(const Partitioner *p, double spent, uint64_t saved) {
  return spent < INFINITY &&
         (p->c->settings[SET_MIN_SHARED].size || spent * XNN_BYTES_PER_TIME < (double)saved);
}

/* Divides a partition at those of its repeats that pay; false when none does. */
static bool divide_partition(Partitioner *p, const Partition *whole, Repeat *repeats,
                             uint32_t repeat_count) {
  uint32_t number = p->partition_of[whole->nodes[0]], last = last_partition(p), kept = 0;
  double spent = p->spent[number];
  uint32_t *best = ARENA_ARRAY(p->c->scratch, uint32_t, whole->node_count),
           *part = ARENA_ARRAY(p->c->scratch, uint32_t, whole->node_count);
  for (uint32_t i = 0; i < repeat_count && p->divisions++ < MAX_DIVISIONS; i++) {
    repeats[kept] = repeats[i];
    double now = INFINITY;
    if (repeat_divide(p->g, whole->nodes, whole->node_count, repeats, kept + 1, p->c->scratch,
                      part)) {
      number_parts(p, whole, part, number, last);
      now = spent_on_parts(p, number, last);
    }
    if (!is_worth_calls(p, now - spent, repeats[kept].saved))
      continue;
    spent = now;
    memcpy(best, part, whole->node_count * sizeof *part);
    kept++;
  }
  number_parts(p, whole, best, number, last);
  return kept > 0;
}

/* Makes repeated parts of partitions partitions of their own; false when there are none. */
static bool divide_repeats(Partitioner *p) {
  Arena *a = p->c->scratch;
  uint32_t *partitions = ARENA_ARRAY(a, uint32_t, p->g->node_count);
  for (FOR_NODES(p->g, n))
    partitions[n] = p->delegated[n] ? p->partition_of[n] : 0;
  const Repeat *found;
  uint64_t least = XNN_LEAST_REPEATED;
  (void)text_parse_u64(p->c->settings[SET_MIN_SHARED], &least);
  uint32_t count = repeat_find(p->g, partitions, least, a, &found);
  if (!count)
    return false;
  bool divided = false;
  PartitionList list = list_partitions(p);
  Repeat *repeats = ARENA_ARRAY(a, Repeat, count);
  for (uint32_t i = 1; i <= list.last; i++) {
    uint32_t own = 0;
    for (uint32_t k = 0; k < count; k++)
      if (found[k].partition == i)
        repeats[own++] = found[k];
    Partition whole = {.nodes = list.nodes + list.first[i],
                       .node_count = list.first[i + 1] - list.first[i]};
    divided |= own && divide_partition(p, &whole, repeats, own);
  }
  if (divided && !p->c->whole)
    (void)drop_copies(p);
  return divided;
}

static XnnCpu chosen_cpu(const BackendContext *c) {
  StrView cpu = c->settings[SET_CPU];
  return !cpu.size ? XNN_CPU_ANY : sv_eq(cpu, SV("avx2")) ? XNN_CPU_AVX2 : XNN_CPU_AVX512;
}

static Status partition(BackendContext *c, Graph *g) {
  Partitioner p = {.c = c, .g = g};
  p.delegated = ARENA_ARRAY(c->scratch, bool, g->node_count);
  p.partition_of = ARENA_ARRAY(c->scratch, uint32_t, g->node_count);
  p.guard = ARENA_ARRAY(c->scratch, SymInt, g->node_count);
  xl_init(&p.l, g, chosen_cpu(c), c->scratch);
  try_nodes(&p);
  find_guards(&p);
  do {
    number_nodes(&p);
    if (p.guarded)
      divide_by_guards(&p);
  } while ((!c->whole && drop_copies(&p)) || !try_partitions(&p) || drop_small(&p));
  if (divide_repeats(&p))
    (void)try_partitions(&p);
  for (FOR_NODES(g, n)) {
    uint32_t tag = g->nodes[n].tag = p.delegated[n] ? p.partition_of[n] : 0;
    if (tag)
      c->costs[tag] = (PartitionCost){p.spent[tag], p.saved[tag]};
  }
  xl_release(&p.l);
  return STATUS_OK;
}

static Status preprocess(BackendContext *c, Graph *g, const Partition *part, DelegateCode *code) {
  XnnLowering l;
  xl_init(&l, g, chosen_cpu(c), c->scratch);
  if (!lower_all(&l, part))
    BUG("a node is refused when lowered (%s), and was not before", l.refusal.rule);
  xnn_write_delegate(c, g, &l, code);
  (void)xl_guard(g, part->nodes[0], &code->guard);
  xl_release(&l);
  if (!code->blob)
    return diag_report(c->sink, DIAG_TOO_LARGE, node_place(g, part->nodes[0]),
                       "the graph for XNNPACK is larger than 2 GiB");
  return STATUS_OK;
}

static const BackendSetting settings[] = {
    [SET_MIN_OPS] = {"min-ops", "N",
                     "partitions of fewer nodes stay portable (default: by estimated time)",
                     SETTING_NUMBER},
    [SET_OPS] = {"ops", "LIST", "only these ops and nodes", SETTING_NODES},
    [SET_SKIP] = {"skip", "LIST", "never these ops and nodes", SETTING_NODES},
    [SET_MIN_SHARED] = {"min-shared", "BYTES",
                        "equal parts share a delegate when that saves so many bytes of weights "
                        "(default: 131072, and by estimated time)",
                        SETTING_NUMBER},
    [SET_CPU] = {"cpu", "avx2|avx512",
                 "the CPU that convolutions are arranged for (default: none in particular)",
                 SETTING_CHOICE},
    {NULL},
};

/* What it takes better in the form that these passes give it. */
static const char *const wanted_passes[] = {
    "recover_dynamic",   "move_quantized",     "unify_channels",          "hoist_products",
    "crop_convolutions", "gather_rows",        "gather_pixels",           "round_comparisons",
    "guard_softmax",     "recover_group_norm", "recover_channel_windows", "fold_weights",
    "raise_views",       "recover_bias",       "recover_resampling",      NULL};

const Backend backend_xnnpack = {.name = "xnnpack",
                                 .id = XNN_BACKEND_ID,
                                 .summary =
                                     "CPU kernels of XNNPACK; float16 is computed in float32",
                                 .settings = settings,
                                 .passes = wanted_passes,
                                 .quantized = true,
                                 .knows = xl_knows,
                                 .partition = partition,
                                 .preprocess = preprocess};
