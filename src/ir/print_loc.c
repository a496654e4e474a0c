/* Locations as text: where nodes come from. */
#include "ir/text.h"

static void put_name(const Graph *g, NameId name, StrBuf *out) {
  if (!name) {
    strbuf_append(out, SV("none"));
    return;
  }
  strbuf_append_char(out, '"');
  strbuf_append_escaped(out, intern_get(&g->ctx->names, name));
  strbuf_append_char(out, '"');
}

static void put_one(const Graph *g, const Loc *loc, StrBuf *out) {
  strbuf_append_char(out, '(');
  put_name(g, loc->name, out);
  strbuf_append(out, SV(", "));
  put_name(g, loc->op_type, out);
  strbuf_printf(out, ", %d", loc->index);
  if (loc->scope || loc->origin) {
    strbuf_append(out, SV(", "));
    put_name(g, loc->scope, out);
  }
  if (loc->origin) {
    strbuf_append(out, SV(", "));
    put_name(g, loc->origin, out);
  }
  strbuf_append_char(out, ')');
}

void loc_print(const Graph *g, LocId id, StrBuf *out) {
  StrView word = SV(" loc");
  for (LocId older; id && id < g->loc_count; id = older) {
    strbuf_append(out, word);
    put_one(g, &g->locs[id], out);
    older = g->locs[id].from < id ? g->locs[id].from : 0;
    word = SV(" from");
  }
}

void origin_print(const Graph *g, NodeId call, StrBuf *out) {
  const DelegateOrigin *origin = delegate_origin(g, call);
  if (!origin)
    return;
  strbuf_append(out, SV(" of ["));
  for (uint32_t i = 0; i < origin->count; i++) {
    strbuf_append(out, i ? SV(",") : SV(""));
    if (origin->locs[i])
      loc_print(g, origin->locs[i], out);
    else
      strbuf_append(out, SV(" none"));
  }
  strbuf_append(out, SV(" ]"));
}
