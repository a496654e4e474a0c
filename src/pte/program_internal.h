/* Shared by the parts of the decoder: program.c (file, segments), program_method.c (plans),
 * program_values.c (values). */
#ifndef ETC_PTE_PROGRAM_INTERNAL_H
#define ETC_PTE_PROGRAM_INTERNAL_H

#include "pte/flatread.h"
#include "pte/program.h"

typedef struct Decoder {
  PteProgram *p;
  FbReader reader;
  uint64_t budget; /* list elements that may still be decoded: a small file may name one long vector
                      many times */
  uint64_t
      uses; /* the same for the elements of lists, counted again for each argument that is one */
  Status status;  /* first error */
  StrView method; /* being decoded, for messages */
} Decoder;

/* Reports "method 'm': message" at the file and makes the decoding fail; decoding goes on where it
 * can. */
void decode_error(Decoder *d, DiagCode code, const char *format, ...) ETC_PRINTF(3, 4);
/* Takes count elements from the budget; false (reported) when it is used up. */
bool decode_charge(Decoder *d, uint64_t count);
/* A vector of indices below limit (or >= lowest, for -1), as an array in the arena. what: "inputs".
 * NULL when absent or wrong (reported unless absent). */
int32_t *decode_indices(Decoder *d, FbVector v, int32_t lowest, uint32_t limit, const char *what);

void decode_method(Decoder *d, FbTable plan, PteMethod *m);
/* Follow the fields that have no use here; a fault goes to the reader. */
void skim_program(FbTable root);
/* inputs, outputs: what it says of them as text */
void skim_plan(FbTable plan, StrView *inputs, StrView *outputs);
void skim_chain(FbTable chain);
void skim_tensor(FbTable tensor, FbTable extra);
void decode_values(Decoder *d, FbVector values, PteMethod *m);

#endif
