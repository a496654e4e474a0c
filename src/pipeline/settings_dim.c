/* --dim NAME=N, NAME=LO..HI, NAME=OTHER: sizes of dimensions, and which are equal. */
#include "pipeline/settings.h"
#include "support/text.h"

size_t settings_number_at(StrView value) {
  size_t at = value.size;
  while (at > 0 && value.data[at - 1] != '=')
    at--;
  return at;
}

static bool parse_range(StrView text, int64_t *lo, int64_t *hi, bool *range) {
  *range = true;
  for (size_t i = 0; i + 1 < text.size; i++)
    if (text.data[i] == '.' && text.data[i + 1] == '.')
      return text_parse_i64((StrView){text.data, i}, lo) &&
             text_parse_i64((StrView){text.data + i + 2, text.size - i - 2}, hi);
  *range = false;
  *hi = 0;
  if (!text_parse_i64(text, lo))
    return false;
  *hi = *lo;
  return true;
}

/* What is no number is the name of another dimension. */
static bool is_dim_name(StrView text) {
  return text.size && !strchr("0123456789+-.", text.data[0]);
}

/* NAME=OTHER: the two have one size. */
static EtcStatus set_equal(Session *s, StrView value, DimFlag *flag) {
  if (sv_eq(options_dim_root(&s->arena, settings_options(s), flag->same), flag->name))
    return session_usage(s, "--dim", "give one of them a size, and the others its name",
                         "'" SV_FMT "': '" SV_FMT "' and '" SV_FMT
                         "' would have the size of each other",
                         SV_ARG(value), SV_ARG(flag->name), SV_ARG(flag->same));
  return ETC_OK;
}

/* A --dim without name or size, or whose size is neither a number, a range nor a name. */
static EtcStatus dim_unclear(Session *s, StrView value, StrView size) {
  const char *hint = "write --dim NAME=N, NAME=LO..HI or NAME=OTHER";
  if (size.size == value.size || size.size == 0)
    return session_missing(s, "--dim", hint, "size", value);
  if (size.size + 1 == value.size)
    return session_usage(s, "--dim", hint, "'" SV_FMT "': the name is missing", SV_ARG(value));
  bool digits = true;
  for (size_t i = 0; i < size.size; i++)
    digits = digits && is_digit(size.data[i]);
  return session_usage(s, "--dim", digits ? "sizes are 2147483647 at most" : hint,
                       "'" SV_FMT "': '" SV_FMT "' is %s", SV_ARG(value), SV_ARG(size),
                       digits ? "too large" : "not a size");
}

static EtcStatus read_dim(Session *s, StrView value, DimFlag *flag) {
  size_t at = settings_number_at(value);
  StrView text = {value.data + at, value.size - at};
  bool range, equal = is_dim_name(text);
  if (at < 2 || !(equal || parse_range(text, &flag->lo, &flag->hi, &range)))
    return dim_unclear(s, value, text);
  flag->name = sv_from(arena_strdup(&s->arena, (StrView){value.data, at - 1}));
  if (equal) {
    flag->same = sv_from(arena_strdup(&s->arena, text));
    return set_equal(s, value, flag);
  }
  if (flag->lo < 0 || flag->hi < flag->lo)
    return session_usage(s, "--dim", "sizes are 0 or more, and LO is not above HI",
                         "'" SV_FMT "' is an impossible range", SV_ARG(value));
  if (flag->hi == 0 && !range)
    return session_usage(
        s, "--dim",
        arena_printf(&s->arena, "write --dim " SV_FMT "=0..0 if that is meant", SV_ARG(flag->name)),
        "'" SV_FMT "': tensors with a dimension of 0 have no elements", SV_ARG(value));
  return ETC_OK;
}

EtcStatus session_set_dim(Session *s, StrView value) {
  DimFlag flag = {.lo = 0, .hi = 0};
  TRY(read_dim(s, value, &flag));
  MethodOptions *o = settings_options(s);
  if (options_dim(o, flag.name))
    return session_usage(s, "--dim", "give each dimension once",
                         "dimension '" SV_FMT "' is given twice", SV_ARG(flag.name));
  options_add_dim(o, flag, ARENA_NEW(&s->arena, bool));
  return ETC_OK;
}
