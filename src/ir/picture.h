/* Graphs in the formats of tools that draw them. */
#ifndef ETC_IR_PICTURE_H
#define ETC_IR_PICTURE_H

#include "ir/graph.h"
#include "support/json.h"

/* A digraph of Graphviz (https://graphviz.org/doc/info/lang.html). Labels are records of the form
 * that torch.fx writes, from which Netron reads the op and its arguments:
 * {ID|op_code=call_function|OP|NAME: VALUE ...}. */
void picture_dot(const Graph *g, StrBuf *out);

/* An object "graphs" of a collection of Model Explorer (its graph_builder.py names the fields): id
 * and nodes, in namespaces that follow the names of the model's nodes. */
void picture_model_explorer(const Graph *g, JsonWriter *w);

#endif
