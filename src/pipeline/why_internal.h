/* What the files of `etc why` share. */
#ifndef ETC_PIPELINE_WHY_INTERNAL_H
#define ETC_PIPELINE_WHY_INTERNAL_H

#include "passes/executorch/liveness.h"
#include "pipeline/life.h"
#include "pipeline/why.h"
#include "support/bitset.h"
#include "support/keymap.h"
#include "support/number.h"

/* An operator or a value of one method. */
typedef struct WhyTarget {
  const Method *method;
  uint32_t method_index;
  LifeTarget target;
  LocId loc; /* of an operator, one of its locations; 0: a value */
  NameId name;
} WhyTarget;

/* All that name may mean; in arena. */
WhyTarget *why_targets(const Session *s, StrView name, Arena *arena, uint32_t *count);
/* All operators of all methods. */
WhyTarget *why_operators(const Session *s, Arena *arena, uint32_t *count);
/* An operator of a model, by its name or that of an output, that import did not come to; NULL. */
const Onnx__NodeProto *why_left_out(const Session *s, StrView name);
/* The hint is the name of the model that is most like it; false: none is. */
bool why_hint_nearest(const Session *s, StrView name, Arena *arena, Diag *d);

/* One kind of change in one pass, of equal carriers. */
typedef struct WhyChange {
  uint32_t run; /* from 1; 0: import */
  LifeChange change;
  const char *rule, *what, *became; /* ops, with numbers; became NULL: nothing */
  const char *of;                   /* operators of the model that `became` is of, or "" */
  bool constant;                    /* that is what changed */
  uint32_t count;
  uint32_t order; /* in which it was found */
} WhyChange;

typedef enum WhyEndKind {
  WHY_DELEGATE,
  WHY_KERNEL,
  WHY_CONTROL,
  WHY_VIEW, /* no instruction */
  WHY_CONSTANT,
  WHY_INPUT,
  WHY_STATE,
  WHY_ENDS
} WhyEndKind;

/* What is in the program. */
typedef struct WhyEnd {
  WhyEndKind kind;
  NodeId node;
  ValueId value;
  uint32_t instruction, instruction_count; /* the first, and how many */
  uint32_t delegate; /* from 1, over all methods, as etc inspect counts them */
  const char *what;  /* the kernel, the backend, the type of a constant */
  const char *form;  /* of a constant: how its bytes lie, and who has them */
} WhyEnd;

/* A piece of planned memory. */
typedef struct WhyMemory {
  ValueId value;
  Storage storage;
  const char *bank;        /* "" without banks */
  const char *from, *to;   /* "instruction 3", "the call", "the end" */
  ValueId in_place;        /* the operand that it is written over, or whose memory it is; 0: none */
  const ValueId *sharing;  /* other values that have some of its bytes at another time */
  uint32_t sharing_listed; /* in `sharing`: all, or the first few of them for text */
  uint32_t sharing_count;
} WhyMemory;

enum { SHARING_SHOWN = 4 }; /* in text */

/* What a backend made of a carrier. */
typedef struct WhyFact {
  const NodeFact *node;
  const BackendFact *backend;
  const DelegateFact *delegate; /* NULL: it refused the node */
  uint32_t number;              /* of the delegate, as `etc inspect` counts them */
  uint32_t order;               /* of the backend */
} WhyFact;

/* What a backend said of the nodes of a method. */
typedef struct WhyBackend {
  const BackendFact *fact;
  const DelegateFact **delegates; /* by partition; NULL: it became none */
  uint32_t *first;                /* by node: 1 + the first fact of it, 0: none */
  uint32_t *next;                 /* by fact: 1 + the next one of that node */
} WhyBackend;

/* Values that lie in the same bytes: those with a name first, then by number. */
typedef struct WhyPlace {
  Storage storage;
  ValueId *values;
  uint32_t count;
} WhyPlace;

/* The planned memory of a method. */
typedef struct WhyPlaces {
  WhyPlace *items;
  uint32_t count;
  KeyMap spans; /* by place and span: how many values of the place are in the span */
} WhyPlaces;

/* The program of a method: when what runs, and lies where. */
typedef struct WhyProgram {
  const LifeIndex *index;
  Liveness live;
  WhyBackend *backends;
  uint32_t backend_count;
  uint32_t *first, *count; /* by node: 1 + its first instruction, 0 for none; how many it has */
  uint32_t *delegate; /* by node: the number of the delegate that it calls as `etc inspect` counts
                         them, from 1, over all methods; 0: it calls none */
  uint32_t *begin, *end; /* by position of nodes, from 1: the first instruction of it or of those
                            behind, and the first behind it */
  WhyPlaces *places;
  KeyMap *constants;      /* by the address of bytes: the first constant made of them, if used */
  ValueId *next_of_bytes; /* by constant: the next one */
} WhyProgram;

typedef struct Why {
  Session *s;
  Arena arena;
  bool json; /* all is told, else what is shown */
  WhyTarget t;
  const Graph *g;
  const WhyProgram *program;
  NameId *outputs; /* of an operator: the values that it gives */
  uint32_t output_count;
  Life life;
  bool has_own; /* carriers that stay, and are not other operators' */
  WhyFact *facts;
  uint32_t fact_count;
  WhyChange *changes; /* in the order of the passes */
  uint32_t change_count;
  KeyMap change_texts, change_keys; /* numbers of texts, and of changes, from 1 */
  WhyEnd *ends;
  uint32_t end_count;
  WhyMemory *memory;
  uint32_t memory_count;
} Why;

/* Whether the carrier tells of the target: one of another operator only where nothing else is left.
 */
bool why_tells(const Why *w, const Carrier *c);
/* What is the same for all targets of a method (why_end.c). */
Status why_program_init(WhyProgram *p, const Session *s, uint32_t method, Arena *arena);
/* Fills in ends and memory. */
void why_find_ends(Why *w);
/* Where planned memory is (why_memory.c). */
WhyPlaces *why_find_places(const Graph *g, const Liveness *live, Arena *arena);
/* The memory of ends, with their lifetimes and what shares it. */
void why_find_memory(Why *w);

/* "aten::add.Tensor" */
const char *why_op_name(OpId op, Arena *arena);
/* The name of v in the model, or of what it is a result of: "'x'". */
const char *why_value_name(const Why *w, ValueId v, Arena *arena);
/* "'conv1' (Conv)", or the op where a pass made it. */
const char *why_loc_name(const Graph *g, LocId loc, Arena *arena);
/* The operators that read the value, or one of the outputs, of the model: "'a' (Conv), 'b' (Add)";
 * "" for none. */
const char *why_readers(Why *w);

/* Of an operator that import did not come to. */
void why_print_left_out(const Onnx__NodeProto *node, bool json, StrBuf *out);
void why_print_text(Why *w, StrBuf *out);
void why_print_json(Why *w, StrBuf *out);

#endif
