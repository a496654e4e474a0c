/* See banks.h. */
#include "pte/banks.h"

#include "support/text.h"

#define PREFIX "etc:"

enum { MAX_TEXT = 4096 }; /* many methods may share one */

void banks_print(const Graph *g, StrBuf *out) {
  if (g->bank_count)
    strbuf_append(out, SV(PREFIX));
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

MemoryBank *banks_parse(StrView text, uint32_t most, Arena *arena, uint32_t *count) {
  *count = 0;
  if (!text.data || text.size > MAX_TEXT || !sv_starts_with(text, SV(PREFIX)))
    return NULL;
  text.data += sizeof PREFIX - 1;
  text.size -= sizeof PREFIX - 1;
  MemoryBank *banks = ARENA_ARRAY(arena, MemoryBank, (size_t)most + 1);
  while (text.size && *count < most && take_bank(&text, &banks[*count]))
    ++*count;
  if (text.size == 0 && *count)
    return banks;
  *count = 0;
  return NULL;
}
