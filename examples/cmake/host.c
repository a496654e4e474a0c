/* A program in the binary: what etc_lower(digits ... EMBED) made is linked, its header included. */
#include <stdio.h>

#include "digits.h"

static unsigned char arena[DIGITS_FORWARD_ARENA_1];

int main(void) {
  printf("%s: %d bytes of program, %zu bytes of arena\n", DIGITS_FORWARD_NAME, DIGITS_SIZE,
         sizeof arena);
  return digits[4] != 'E' || digits[5] != 'T'; /* what a .pte begins with, after an offset */
}
