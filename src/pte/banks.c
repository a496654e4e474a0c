/* See banks.h. */
#include "pte/banks.h"

#include "support/text.h"

#define PREFIX "etc:"

enum { MAX_TEXT = 4096 /* many methods may share one */, MAX_ALIGNMENT = 1 << 20 };

void banks_print(const Graph *g, StrBuf *out) {
  if (g->bank_count || g->arena_alignment)
    strbuf_append(out, SV(PREFIX));
  if (g->arena_alignment)
    strbuf_printf(out, " %u", g->arena_alignment);
  for (uint32_t i = 0; i < g->bank_count; i++)
    strbuf_printf(out, " " SV_FMT "=%llu", SV_ARG(g->banks[i].name),
                  (unsigned long long)g->banks[i].size);
}

/* " NAME=NUMBER", cut off the text. */
static bool take_bank(StrView *text, MemoryBank *out) {
  if (text->size == 0 || text->data[0] != ' ')
    return false;
  const char *begin = text->data + 1, *end = text->data + text->size;
  const char *space = memchr(begin, ' ', (size_t)(end - begin));
  const char *stop = space ? space : end, *equals = memchr(begin, '=', (size_t)(stop - begin));
  if (!equals || equals == begin)
    return false;
  out->name = (StrView){begin, (size_t)(equals - begin)};
  *text = (StrView){stop, (size_t)(end - stop)};
  return text_parse_u64((StrView){equals + 1, (size_t)(stop - equals - 1)}, &out->size);
}

/* " NUMBER", cut off the text; 0 when it begins with something else. */
static uint32_t take_alignment(StrView *text) {
  StrView rest = {text->data + 1, text->size ? text->size - 1 : 0};
  const char *space = rest.size ? memchr(rest.data, ' ', rest.size) : NULL;
  StrView word = {rest.data, space ? (size_t)(space - rest.data) : rest.size};
  uint64_t number = 0;
  if (!text->size || text->data[0] != ' ' || !text_parse_u64(word, &number) ||
      number > MAX_ALIGNMENT || (number & (number - 1)))
    return 0;
  *text = (StrView){rest.data + word.size, rest.size - word.size};
  return (uint32_t)number;
}

MemoryBank *banks_parse(StrView text, uint32_t most, Arena *arena, uint32_t *count,
                        uint32_t *alignment) {
  *count = *alignment = 0;
  if (!text.data || text.size > MAX_TEXT || !sv_starts_with(text, SV(PREFIX)))
    return NULL;
  text.data += sizeof PREFIX - 1;
  text.size -= sizeof PREFIX - 1;
  MemoryBank *banks = ARENA_ARRAY(arena, MemoryBank, (size_t)most + 1);
  uint32_t aligned = take_alignment(&text);
  while (text.size && *count < most && take_bank(&text, &banks[*count]))
    ++*count;
  if (text.size) {
    *count = 0;
    return NULL;
  }
  *alignment = aligned;
  return *count ? banks : NULL;
}
