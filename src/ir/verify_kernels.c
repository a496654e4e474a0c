/* The last check before a program is written: every call against what the runtime really takes. The
 * facts are the columns out, dtypes and check of the op table, probed on ExecuTorch 1.4.1. A fault
 * is no error of etc, but a model that this runtime cannot run, so each is reported at its ONNX
 * node. */
#include "ir/text.h"
#include "ir/verify.h"

#define NO_ARG UINT32_MAX

typedef struct KernelVerifier {
  const Graph *g;
  Arena arena;
  Status status;
} KernelVerifier;

static Diag *begin(KernelVerifier *v, NodeId n, DiagCode code) {
  return diag_begin(v->g->ctx->sink, code, node_place(v->g, n));
}

static void end(KernelVerifier *v, NodeId n, Diag *d) {
  StrBuf text = {0};
  node_print(v->g, n, &text);
  diag_note(d, "in %s", strbuf_cstr(&text));
  strbuf_release(&text);
  v->status = diag_end(d);
}

/* A view that becomes no call, because its result is where its operand is. */
static bool is_elided(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (!op_has_trait(node->op, OP_VIEW) || !type_is_static(value_type(g, node->first_result)))
    return false;
  ValueId base = node_value(g, n, 0);
  uint32_t from = value_cget(g, base)->storage, to = value_cget(g, node->first_result)->storage;
  if (!from || !to)
    return g->level == LEVEL_EXECUTORCH && !to && value_is_const(g, base);
  return from == to || (g->storages[from].arena == g->storages[to].arena &&
                        g->storages[from].offset == g->storages[to].offset);
}

static void note_dtypes(Diag *d, DTypeSet set) {
  StrBuf text = {0};
  for (unsigned t = 0; t < DTYPE_NONE; t++)
    if (dtype_in((DType)t, set))
      strbuf_printf(&text, "%s%s", text.size ? ", " : "", dtype_name((DType)t));
  diag_note(d, "it takes %s", strbuf_cstr(&text));
  strbuf_release(&text);
}

/* arg: index of the schema argument that holds the tensor, NO_ARG for a result. */
static bool check_dtype(KernelVerifier *v, NodeId n, ValueId id, uint32_t arg) {
  OpId op = node_cget(v->g, n)->op;
  const OpRow *row = op_row(op);
  const Type *t = value_type(v->g, id);
  if (t->kind != TYPE_TENSOR || !row->dtypes || dtype_in((DType)t->dtype, row->dtypes))
    return true;
  StrView name = arg == NO_ARG ? SV("") : op_schema(op)->args[arg].name;
  Diag *d = begin(v, n, DIAG_KERNEL_DTYPE);
  diag_message(d, "kernel '%s' does not take element type %s (%s" SV_FMT ")", row->out,
               dtype_name((DType)t->dtype), arg == NO_ARG ? "result" : "operand ", SV_ARG(name));
  note_dtypes(d, row->dtypes);
  if (!type_is_static(t) && dtype_in((DType)t->dtype, DTS_UNSIGNED))
    diag_hint(d, "%s; unsigned integers also lower where sizes are at least 1 (--dim NAME=1..N)",
              diag_row(DIAG_KERNEL_DTYPE)->hint);
  end(v, n, d);
  return false;
}

/* Reports the first only: the other tensors mostly have the same. */
static bool check_dtypes(KernelVerifier *v, NodeId n) {
  const Graph *g = v->g;
  FOR_ARG_OPERANDS(g, n, i, id, {
    if (id && !check_dtype(v, n, id, i))
      return false;
  })
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    if (!check_dtype(v, n, node_result(g, n, i), NO_ARG))
      return false;
  return true;
}

static void check_call(KernelVerifier *v, NodeId n) {
  const Graph *g = v->g;
  OpId op = node_cget(g, n)->op;
  const OpRow *row = op_row(op);
  if (is_elided(g, n) || op_has_trait(op, OP_CONTROL | OP_DELEGATE))
    return;
  if (!row->out) {
    Diag *d = begin(v, n, DIAG_NO_KERNEL);
    StrView name = op_schema(op)->full;
    diag_message(d, "the runtime has no kernel for '" SV_FMT "'", SV_ARG(name));
    end(v, n, d);
    return;
  }
  if (!check_dtypes(v, n))
    return;
  const char *why = row->check ? row->check(g, n, &v->arena) : NULL;
  if (why) {
    Diag *d = begin(v, n, DIAG_KERNEL_ARG);
    diag_message(d, "kernel '%s' does not take this call: %s", row->out, why);
    end(v, n, d);
  }
}

Status graph_verify_kernels(Graph *g) {
  KernelVerifier v = {.g = g};
  for (FOR_NODES(g, n))
    check_call(&v, n);
  arena_release(&v.arena);
  return v.status;
}
