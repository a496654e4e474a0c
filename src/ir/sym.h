/* Integers that may be symbolic.
 *
 * A SymInt is an int64: a plain number, or the handle of an expression over symbols s0, s1, … with
 * known ranges. Handles are the 2^32 numbers from SYM_BAND on, close to INT64_MIN, which sizes
 * never are. Numbers from a file can be: sym_from_number() refuses those.
 *
 * Expressions have one form: sums of products with integer coefficients, in a fixed order, each
 * stored once. Two expressions that + - * can show to be equal therefore have the same handle, and
 * == compares them. floordiv, mod, min and max are factors that are not looked into, apart from
 * their operands, which have that form, too.
 *
 * A symbol stands for an input dimension (--dim batch=1..8) or for a size known only while running
 * ("unbacked", NonZero). */
#ifndef ETC_IR_SYM_H
#define ETC_IR_SYM_H

#include "ir/dtype.h"
#include "support/arena.h"
#include "support/number.h"
#include "support/strbuf.h"

typedef int64_t SymInt;
#define SYM_BAND (INT64_MIN + ((int64_t)1 << 40))
#define SYM_MAX_TERMS 64 /* a sum that would grow beyond this stays a product of its factors */
/* Limits of one expression written out as a tree. Expressions share their parts: without limits, a
 * few steps of a hostile model could make a tree that takes forever to walk. */
#define SYM_MAX_SIZE 10000
#define SYM_MAX_DEPTH 96

typedef enum SymKind {
  SYM_SYMBOL,
  SYM_SUM,
  SYM_PRODUCT,
  SYM_FLOORDIV,
  SYM_MOD,
  SYM_MIN,
  SYM_MAX
} SymKind;

/* One expression. SUM: constant + Σ coefficient[i] * term[i] (terms are symbols, products or atoms,
 * ordered by handle); PRODUCT: term[0] * term[1] * … (ordered, repeated for powers); others: two
 * operands. */
typedef struct SymExpr {
  SymKind kind;
  uint32_t count;
  SymInt *terms;
  int64_t *coefficients; /* SUM only */
  int64_t constant;      /* SUM only */
  int64_t lo, hi;        /* every kind: proven range */
  uint32_t size, depth;  /* of the tree, a symbol or number is 1 and 1 */
  uint32_t hash;
  /* SYMBOL only */
  uint32_t index; /* n of "sn" */
  char *name;     /* ONNX dim_param or "" */
  bool unbacked;  /* size known only while running */
} SymExpr;

/* A product or floordiv of a and b that proved a narrower range for its value than the value as it
 * is written has: floordiv(s0 - s1, 2) is -s1 + floordiv(s0 + s1, 2), whose parts are further
 * apart.
 */
typedef struct SymProof {
  SymInt value, a, b;
  SymKind kind;
} SymProof;

typedef struct SymTable {
  Arena arena;
  SymExpr *exprs;
  uint32_t count, capacity;
  uint32_t *slots, slot_count; /* hash-consing */
  uint32_t *symbols;           /* expression of symbol n */
  uint32_t symbol_count, symbol_capacity;
  SymProof *proofs; /* in the order in which they were found */
  uint32_t proof_count, proof_capacity;
  bool too_large; /* set when an expression would have passed a limit. What the arithmetic returned
                     instead is wrong. Stays set until someone clears it. */
  bool saturated; /* set when a number did not fit into 64 bits and became INT64_MAX or INT64_MIN.
                     Still right as a bound, wrong as a value. Stays set, likewise. */
} SymTable;

void sym_release(SymTable *t);

static inline bool sym_is_const(SymInt v) {
  return v < SYM_BAND || v >= SYM_BAND + ((int64_t)1 << 32);
}
/* Whether b is a whole multiple of a > 0, both constant. */
static inline bool sym_const_divides(SymInt a, SymInt b) {
  return sym_is_const(a) && sym_is_const(b) && a > 0 && b % a == 0;
}
/* A number from a file as a constant SymInt; false when it is one of those that stand for
 * expressions. */
static inline bool sym_from_number(int64_t number, SymInt *out) {
  *out = number;
  return sym_is_const(number);
}
/* The size that a whole float is; false for other floats. */
static inline bool sym_from_float(double number, SymInt *out) {
  return int_exact(number, out) && sym_is_const(*out);
}
/* A new symbol with an inclusive range, 0 <= lo <= hi. */
SymInt sym_symbol(SymTable *t, StrView name, int64_t lo, int64_t hi, bool unbacked);
const SymExpr *sym_expr(const SymTable *t,
                        SymInt v); /* v must not be constant and must be of this table */
SymInt sym_symbol_by_index(const SymTable *t, uint32_t index);

/* Arithmetic. Constants are computed. A result beyond SYM_MAX_SIZE or SYM_MAX_DEPTH sets too_large
 * and is some other expression (build_args() refuses the node then). A number that overflows sets
 * saturated and is INT64_MAX or INT64_MIN; proven ranges end there without a flag. Division by a
 * constant zero gives 0. floordiv rounds to minus infinity. */
SymInt sym_add(SymTable *t, SymInt a, SymInt b);
SymInt sym_sub(SymTable *t, SymInt a, SymInt b);
SymInt sym_mul(SymTable *t, SymInt a, SymInt b);
SymInt sym_floordiv(SymTable *t, SymInt a, SymInt b);
/* v / divisor, neither a constant, when that leaves nothing whatever the symbols are; else false.
 */
bool sym_exact_div(SymTable *t, SymInt v, SymInt divisor, SymInt *out);
SymInt sym_ceildiv(SymTable *t, SymInt a, SymInt b); /* -floordiv(-a, b) */
SymInt sym_mod(SymTable *t, SymInt a, SymInt b);     /* a - floordiv(a, b) * b */
SymInt sym_min(SymTable *t, SymInt a, SymInt b);
SymInt sym_max(SymTable *t, SymInt a, SymInt b);
/* Of none: 1. */
static inline SymInt sym_product(SymTable *t, const SymInt *factors, uint32_t count) {
  SymInt product = 1;
  for (uint32_t i = 0; i < count; i++)
    product = sym_mul(t, product, factors[i]);
  return product;
}

/* A step of a computation in floating point: times, divided by, or plus a number. */
typedef enum SymStepKind { SYM_TIMES, SYM_OVER, SYM_PLUS } SymStepKind;
typedef struct SymStep {
  SymStepKind kind;
  double by;
} SymStep;

/* SYM_TRUNC: of numbers that are not negative. */
typedef enum SymRounding { SYM_TRUNC, SYM_FLOOR, SYM_CEIL } SymRounding;

/* Up to which number a float type tells sizes apart, that of float32 also for wider ones. */
int64_t sym_exact_max(DType dtype);
/* What floating point makes of a size by the steps, one after the other, each of that type (F16,
 * F32 or F64), and rounded to an integer in the end: 10 * 0.7 in float32 is 7. *out is an
 * expression that agrees for every value that the size can have; false if no such expression was
 * found, or the size may not be exact in the type (F64: in float32). */
bool sym_computed(SymTable *t, SymInt size, const SymStep *steps, uint32_t count, DType dtype,
                  SymRounding rounding, SymInt *out);

int64_t sym_lower(const SymTable *t, SymInt v); /* proven bounds, saturated */
int64_t sym_upper(const SymTable *t, SymInt v);
/* Three-valued comparison by ranges of the difference: 1 true, 0 false, -1 not known. */
int sym_known_eq(SymTable *t, SymInt a, SymInt b);
int sym_known_lt(SymTable *t, SymInt a, SymInt b);
int sym_known_le(SymTable *t, SymInt a, SymInt b);
/* The value with symbol n = values[n]; false when it overflows or divides by zero. */
bool sym_eval(const SymTable *t, SymInt v, const int64_t *values, int64_t *out);

/* "s0*4 + 3", "floordiv(s0, 2)", "-1". */
void sym_print(const SymTable *t, SymInt v, StrBuf *out);
/* The order in which the terms of the expression v are printed, as places among its terms. It does
 * not depend on the order in which expressions were made, as that of the terms does. */
void sym_print_order(const SymTable *t, SymInt v, uint32_t order[SYM_MAX_TERMS]);
/* Appends v for people: symbols that have a name by it, "batch*4 + 3". */
void sym_print_named(const SymTable *t, SymInt v, StrBuf *out);
/* Parses what sym_print prints, from *cursor up to end; moves the cursor. Depth-bounded. false on a
 * syntax error or unknown symbol. */
bool sym_parse(SymTable *t, const char **cursor, const char *end, SymInt *out);

#endif
