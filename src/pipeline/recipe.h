/* Recipes: the options of a session in a YAML file.
 *
 *     include: [xnnpack, ../common.yaml]
 *     model: decoder.onnx          # or method: {encode: enc.onnx, decode: dec.onnx}
 *     dim: {batch: 1, past: 0..64}
 *     state: {past_*: present_*}
 *     pass: {canonicalize: edge}
 *     methods:
 *       decode: {model: dec.onnx, dim: {batch: 4}, backend: xnnpack}
 *
 * A key is the name of an option without the dashes. Its value is what the option takes; options
 * that repeat take a list, and those of the form NAME=VALUE a mapping. Options under `methods` are
 * of one method, those above of all. Keys have no order: a recipe says what the stages do, never in
 * which order they run. What names the same thing: the command line wins over the recipe, the
 * recipe over what it includes, later includes over earlier ones, and in one file a method's
 * section over what is above. Paths are relative to the folder of the file that names them; a
 * recipe that comes with etc (recipes/) is named without folder and ending. */
#ifndef ETC_PIPELINE_RECIPE_H
#define ETC_PIPELINE_RECIPE_H

#include "pipeline/session.h"

/* Sets what the recipe of the session says, if it has one; once. Reported with file, line and
 * column: what is no YAML, keys that do not exist or come twice, values that an option cannot have,
 * aliases, recipes that include themselves. */
EtcStatus recipe_apply(Session *s);

typedef struct RecipeText {
  const char *name, *text;
} RecipeText;
/* The recipes that come with etc; the last has no name. */
extern const RecipeText recipe_texts[];
/* The one of that name, or NULL. */
const RecipeText *recipe_shipped(StrView name);

#endif
