/* A pass that makes a sigmoid of each relu. */
#include <etc/plugin.h>

static Status relu_to_sigmoid(PassContext *p, Graph *g) {
  uint64_t count = 0;
  for (NodeId n = g->first, next; n; n = next) {
    next = g->nodes[n].next;
    if (g->nodes[n].op != OP_RELU)
      continue;
    Builder b = builder_make(g, n, g->nodes[n].loc);
    ValueId v = build(&b, OP_SIGMOID, A_VAL(node_value(g, n, 0)));
    if (b.status != STATUS_OK)
      return b.status;
    graph_replace_uses(g, node_result(g, n, 0), v);
    graph_remove_node(g, n);
    count++;
  }
  pass_count(p, "relus", count);
  return STATUS_OK;
}

static const PassRow row = {.name = "relu_to_sigmoid",
                            .run = relu_to_sigmoid,
                            .stage = STAGE_EDGE,
                            .level_in = LEVEL_EDGE,
                            .level_out = LEVEL_EDGE,
                            .skippable = true,
                            .summary = "Make a sigmoid of each relu"};
static const PassRow *const passes[] = {&row, NULL};
ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "swap", .passes = passes};
