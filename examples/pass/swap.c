/* A pass that makes a sigmoid of each relu. */
#include <etc/plugin.h>

/* What replaces the result of node n, built before it; 0, or a value of another type, would leave
 * the node. */
static ValueId sigmoid(Builder *b, NodeId n) {
  return build(b, OP_SIGMOID, A_VAL(node_value(b->g, n, 0)));
}

/* The count is what --time-passes shows. */
static Status relu_to_sigmoid(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_RELU, sigmoid, "relus"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
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
