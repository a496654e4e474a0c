/* What a program takes of a device: flash, which is the bytes of its file, and SRAM, which is the
 * arenas that it plans. `etc size` shows it, budgets are held against it. */
#ifndef ETC_PTE_SIZE_H
#define ETC_PTE_SIZE_H

#include "pte/program.h"
#include "support/json.h"

typedef enum PtePartKind {
  PTE_PART_PROGRAM, /* the FlatBuffer: values, instructions, names */
  PTE_PART_CONSTANT,
  PTE_PART_STATE, /* first contents */
  PTE_PART_CODE,  /* of delegates */
  PTE_PART_DATA,  /* what delegates find by name */
  PTE_PART_UNUSED,
  PTE_PART_PADDING,
  PTE_PART_KINDS
} PtePartKind;
/* "constants", "delegate code". */
const char *pte_part_name(PtePartKind kind);

/* Bytes of the file that are one thing. What several tensors share belongs to the first. */
typedef struct PtePart {
  PtePartKind kind;
  uint32_t method; /* that uses it first */
  uint64_t offset, bytes;
  StrView what;  /* a name, or a type as in "f32[64, 256]" */
  StrView layer; /* what uses it: a node of the model, or an instruction, a delegate */
} PtePart;

/* The parts of one layer. */
typedef struct PteLayer {
  const PtePart *parts;
  uint32_t count;
  uint64_t bytes;
} PteLayer;

/* A tensor that is in use when its arena is fullest. */
typedef struct PteLive {
  StrView name;    /* of an input, output or state, or the layer that makes it */
  uint64_t bytes;  /* rounded up to the alignment of tensors */
  uint64_t offset; /* in the arena */
} PteLive;

typedef struct PteArena {
  uint32_t id;
  uint64_t bytes;         /* planned */
  const MemoryBank *bank; /* that it lies in, or NULL */
  uint64_t peak;          /* in use at once, at most */
  StrView at;             /* when: a layer, "inputs" or "outputs" */
  PteLive *live;          /* then, the largest first */
  uint32_t live_count;
} PteArena;

typedef struct PteMethodSize {
  StrView name;
  PteArena *arenas;
  uint32_t arena_count;
  uint64_t packed, workspace; /* estimates: what delegates allocate besides */
  uint32_t unknown;           /* delegates without an estimate */
} PteMethodSize;

typedef struct PteSize {
  PtePart *parts; /* by kind, method and layer; their bytes are those of the file */
  uint32_t part_count;
  PteLayer *layers; /* the largest first; the parts of one kind, method and layer each */
  uint32_t layer_count;
  uint64_t totals[PTE_PART_KINDS];
  uint64_t external; /* bytes of the constants that are in a file of their own */
  PteMethodSize *methods;
  uint32_t method_count;
} PteSize;

/* What the model calls things: a program does not say. Functions return an empty text for what
 * they do not know. */
typedef struct PteNames {
  void *user;
  StrView (*instruction)(void *user, uint32_t method, uint32_t instruction);
  StrView (*data)(void *user, StrView key);
} PteNames;

/* names: NULL, or of the model that the program was made of. All memory comes from arena; texts of
 * the program are borrowed. */
PteSize pte_size(const PteProgram *p, const PteNames *names, Arena *arena);

/* What one method needs of the file: what it and its delegates use, also where others use it, too,
 * and the tables of the program, which are one. The rest of the file is padding; there are no
 * methods. Data of delegates that no reader knows are counted for each method. */
PteSize pte_size_flash(const PteProgram *p, const PteNames *names, uint32_t method, Arena *arena);

/* Appends the report. all: every layer and tensor, else the largest. Text is safe to print on a
 * terminal. */
void pte_size_text(const PteProgram *p, const PteSize *size, bool all, StrBuf *out);
/* Writes everything as members into the current JSON object. */
void pte_size_json(const PteProgram *p, const PteSize *size, JsonWriter *w);

#endif
