/* A pass with a fault: it says that results of relu are i64, which they are not. */
#include <etc/plugin.h>

static Status break_relu(PassContext *p, Graph *g) {
  for (FOR_NODES(g, n)) {
    if (g->nodes[n].op != OP_RELU)
      continue;
    const Type *t = value_type(g, node_result(g, n, 0));
    value_set_type(g, node_result(g, n, 0),
                   graph_tensor_type(g, DTYPE_I64, t->rank, t->dims, ORDER_CONTIGUOUS));
    p->changed = true;
  }
  return STATUS_OK;
}

static const PassRow row = {.name = "break_relu",
                            .run = break_relu,
                            .stage = STAGE_EDGE,
                            .level_in = LEVEL_EDGE,
                            .level_out = LEVEL_EDGE,
                            .summary = "Give relu a wrong type"};
static const PassRow *const passes[] = {&row, NULL};
ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "broken", .passes = passes};
