/* IEEE binary16 and bfloat16 <-> binary32, round to nearest even; NaN stays NaN. */
#ifndef ETC_SUPPORT_HALF_H
#define ETC_SUPPORT_HALF_H

#include <stdint.h>

float half_to_float(uint16_t bits);
uint16_t half_from_float(float value);
/* double -> binary16 with a single rounding. */
uint16_t half_from_double(double value);
float bfloat_to_float(uint16_t bits);
uint16_t bfloat_from_float(float value);

#endif
