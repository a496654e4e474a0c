/* Recipes: the options of a session in a YAML file.
 *
 *     model: decoder.onnx          # or method: {encode: enc.onnx, decode: dec.onnx}
 *     dim: {batch: 1, past: 0..64}
 *     state: {past_*: present_*}
 *     plan: greedy
 *     skip-pass: [recover_norm]
 *
 * A key is the name of an option without the dashes. Its value is what the option takes; options
 * that repeat take a list, and those of the form NAME=VALUE (dim, method, state) a mapping. Keys
 * have no order: a recipe says what the stages do, never in which order they run. What was set
 * before, on the command line, stays; a dim, method or state of the recipe is left out when one of
 * its name was given there. Paths are relative to the
 * folder of the recipe. */
#ifndef ETC_PIPELINE_RECIPE_H
#define ETC_PIPELINE_RECIPE_H

#include "pipeline/session.h"

/* Sets what the recipe says. Reported with line and column: what is no YAML, keys that do not exist
 * or come twice, values that an option cannot have, aliases, anything nested deeper. */
EtcStatus recipe_apply(Session *s, const char *path);

#endif
