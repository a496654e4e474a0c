/* Settings that name nodes: "softmax+add.Tensor+@encoder*", terms joined by '+'.
 *
 * A term is an op, with or without its namespace and overload (aten::add.Tensor, add.Tensor, add),
 * or an operator of ONNX (Conv, LSTM: it begins with a capital letter), whatever ops its nodes
 * became, or, behind '@', the name of an ONNX node, in which one '*' stands for any text. */
#ifndef ETC_BACKENDS_SELECTION_H
#define ETC_BACKENDS_SELECTION_H

#include "backends/backend.h"

/* Takes the next term off *rest; false at the end. */
bool selection_next(StrView *rest, StrView *term);
/* name behind its namespace. */
StrView selection_local_name(StrView name);
/* Whether the term is that op. */
bool selection_names_op(StrView term, OpId op);
/* Whether the term is written as an operator of ONNX. */
bool selection_names_operator(StrView term);
/* Whether the term is an op that the backend knows, or names nodes. */
bool selection_term_known(const Backend *backend, StrView term);
/* The spelling of an op of the backend that is nearest to the term, in arena; NULL when none is, or
 * when the term is right and names an op of others. */
const char *selection_nearest(const Backend *backend, StrView term, Arena *arena);
/* The first term that selects the node; empty when none does. */
StrView selection_of_node(StrView selection, const Graph *g, NodeId n);
/* Warns of names and operators that no node of g has. For the message: the option, "--backend", and
 * the name of the setting. */
void selection_warn_unused(DiagSink *sink, const char *option, const char *setting,
                           StrView selection, const Graph *g);

#endif
