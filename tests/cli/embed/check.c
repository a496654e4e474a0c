/* What a host is given: check PROGRAM.pte. The array holds the bytes of the file, at its alignment,
 * and the macros can size static memory. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "model.h"

#define ALIGN(n) __attribute__((aligned(n)))

static unsigned char arena[MODEL_PTE_ARENA_1] ALIGN(MODEL_PTE_ARENA_ALIGNMENT);
static const int32_t sizes[MODEL_PTE_FORWARD_INPUT_0_RANK] = MODEL_PTE_FORWARD_INPUT_0_SIZES;
static float output[MODEL_PTE_FORWARD_OUTPUT_0_BYTES / sizeof(float)];

int main(int argc, char **argv) {
  static unsigned char bytes[MODEL_PTE_SIZE + 1];
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file || fread(bytes, 1, sizeof bytes, file) != MODEL_PTE_SIZE ||
      sizeof model_pte != MODEL_PTE_SIZE || memcmp(bytes, model_pte, MODEL_PTE_SIZE) != 0) {
    printf("the array does not have the bytes of the program\n");
    return 1;
  }
  fclose(file);
  if ((uintptr_t)model_pte % MODEL_PTE_ALIGNMENT != 0 ||
      (uintptr_t)arena % MODEL_PTE_ARENA_ALIGNMENT != 0) {
    printf("the array lies at %p\n", (const void *)model_pte);
    return 1;
  }
  printf("%s: %d inputs, the first %d x %d; %d outputs, the first %d floats; arena %d\n",
         MODEL_PTE_FORWARD_NAME, MODEL_PTE_FORWARD_INPUTS, (int)sizes[0], (int)sizes[1],
         MODEL_PTE_FORWARD_OUTPUTS, (int)(sizeof output / sizeof output[0]), (int)sizeof arena);
  return 0;
}
