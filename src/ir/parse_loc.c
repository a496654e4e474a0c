/* Locations in text: where nodes come from. */
#include "ir/parser.h"

#define MAX_LOC_CHAIN 256

/* (name, op type, index), with the scope and the origin behind them or without */
static Status parse_one_loc(Parser *p, Loc *out) {
  Lexer *l = &p->lex;
  int64_t index = 0;
  TRY(lexer_expect(l, "("));
  TRY(parse_name(p, "the name of an ONNX node", &out->name));
  TRY(lexer_expect(l, ","));
  TRY(parse_name(p, "the type of an ONNX node", &out->op_type));
  TRY(lexer_expect(l, ","));
  lexer_skip(l);
  const char *at = l->at;
  TRY(lexer_i64(l, "the index of an ONNX node", &index));
  if (index < -1 || index > INT32_MAX)
    return lexer_error(l, at, "the index of an ONNX node is out of range");
  out->index = (int32_t)index;
  if (lexer_accept(l, ","))
    TRY(parse_name(p, "the path of an ONNX graph", &out->scope));
  if (lexer_accept(l, ","))
    TRY(parse_name(p, "the origin of an ONNX node", &out->origin));
  return lexer_expect(l, ")");
}

/* loc(…) from(…) …: the last is the oldest and is added first. The same text as in the statement
 * before is the same location. */
Status parse_loc(Parser *p, LocId *out) {
  Lexer *l = &p->lex;
  *out = 0;
  if (!lexer_accept_word(l, "loc"))
    return STATUS_OK;
  const char *start = l->at, *stop;
  Loc chain[MAX_LOC_CHAIN];
  uint32_t count = 0;
  do {
    if (count == MAX_LOC_CHAIN)
      return lexer_error(l, l->at, "more than %d locations", MAX_LOC_CHAIN);
    chain[count] = (Loc){0};
    TRY(parse_one_loc(p, &chain[count++]));
    stop = l->at;
  } while (lexer_accept_word(l, "from"));
  StrView text = {start, (size_t)(stop - start)};
  if (!p->last_loc || !sv_eq(text, p->last_loc_text)) {
    p->last_loc = 0;
    while (count > 0) {
      chain[--count].from = p->last_loc;
      p->last_loc = graph_add_loc(p->g, chain[count]);
    }
    p->last_loc_text = text;
  }
  *out = p->last_loc;
  return STATUS_OK;
}

static Status append_loc(Parser *p, LocId **locs, uint32_t *count) {
  LocId loc = 0;
  if (!lexer_accept_word(&p->lex, "none"))
    TRY(parse_loc(p, &loc));
  *locs = arena_push(&p->g->arena, *locs, *count, sizeof **locs);
  (*locs)[(*count)++] = loc;
  return STATUS_OK;
}

Status parse_origin(Parser *p, NodeId call) {
  Lexer *l = &p->lex;
  Graph *g = p->g;
  LocId *locs = NULL;
  uint32_t count = 0;
  lexer_skip(l);
  const char *at = l->at;
  if (!lexer_accept_word(l, "of"))
    return STATUS_OK;
  if (!op_has_trait(node_cget(g, call)->op, OP_DELEGATE))
    return lexer_error(l, at, "only calls of delegates are made of several nodes");
  TRY(lexer_expect(l, "["));
  do
    TRY(append_loc(p, &locs, &count));
  while (lexer_accept(l, ","));
  TRY(lexer_expect(l, "]"));
  graph_add_origin(g, (DelegateOrigin){call, count, locs});
  return STATUS_OK;
}
