/* The table of passes, from passes.def. */
#include "passes/pass.h"

#include "backends/backend.h"

const PassRow pass_table[] = {
#define ALWAYS false
#define FOR_BACKENDS true
#define PASS(name, stage, in, out, skippable, when, summary)                                       \
  {#name, pass_##name, STAGE_##stage, LEVEL_##in, LEVEL_##out, skippable, when, summary, NULL},
#include "passes/passes.def"
#undef PASS
};
const uint32_t pass_table_size = COUNT_OF(pass_table);

void pass_enter(PassContext *p, const char *plugin) {
  p->errors = p->sink->errors;
  p->sink->plugin = plugin;
  if (p->plugin)
    *p->plugin = plugin;
}

Status pass_leave(PassContext *p, const char *kind, const char *name, Status status) {
  const char *plugin = p->sink->plugin;
  bool reported = p->sink->errors > p->errors;
  pass_enter(p, NULL);
  if (!plugin)
    return status;
  if (reported == (status != STATUS_OK))
    return reported ? STATUS_INVALID : STATUS_OK;
  return diag_report(
      p->sink, DIAG_PLUGIN_FAULT, DIAG_NOWHERE, "%s '%s' of plug-in '%s' %s", kind, name, plugin,
      reported ? "reported an error and returned STATUS_OK" : "failed without a message");
}

void pass_count(PassContext *p, const char *name, uint64_t count) {
  p->changed |= count != 0;
  uint32_t i = 0;
  while (i < p->stat_count && strcmp(p->stats[i].name, name) != 0)
    i++;
  if (i == PASS_MAX_STATS)
    BUG("pass counts more than %d things; '%s' has no room", PASS_MAX_STATS, name);
  if (i == p->stat_count)
    p->stats[p->stat_count++] = (PassStat){.name = name};
  p->stats[i].count += count;
}

Status pass_rewriter(PassContext *p, Graph *g, Rewriter *r) {
  r->counts = ARENA_ARRAY(p->scratch, uint64_t, r->rule_count);
  Status status = rewrite_graph(g, r);
  for (uint32_t i = 0; i < r->rule_count; i++)
    pass_count(p, r->rules[i].name ? r->rules[i].name : r->name, r->counts[i]);
  return status;
}

Status pass_rewrite(PassContext *p, Graph *g, const RewriteRule *rules, uint32_t count) {
  return pass_rewriter(p, g, &(Rewriter){.rules = rules, .rule_count = count});
}

const PassRow *pass_find(StrView name) {
  for (uint32_t i = 0; i < pass_table_size; i++)
    if (sv_eq_str(name, pass_table[i].name))
      return &pass_table[i];
  return NULL;
}

bool backends_take_quantized(const PassOptions *options) {
  for (uint32_t i = 0; i < options->backend_count; i++)
    if (options->backends[i].backend->quantized)
      return true;
  return false;
}

static bool quantizes(PassContext *p, const Backend *backend, const Graph *g, NodeId n) {
  if (!backend->quantizes)
    return true;
  pass_enter(p, backend->plugin);
  bool takes = backend->quantizes(g, n);
  pass_enter(p, NULL);
  return takes;
}

bool backends_quantize(PassContext *p, const Graph *g, NodeId n) {
  const PassOptions *o = p->options;
  for (uint32_t i = 0; i < o->backend_count; i++)
    if (o->backends[i].backend->quantized && quantizes(p, o->backends[i].backend, g, n))
      return true;
  return !backends_take_quantized(o);
}

bool backends_want_pass(const PassOptions *options, const char *name) {
  for (uint32_t i = 0; i < options->backend_count; i++) {
    const char *const *passes = options->backends[i].backend->passes;
    for (; passes && *passes; passes++)
      if (strcmp(*passes, name) == 0)
        return true;
  }
  return false;
}
