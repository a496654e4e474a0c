/* The page: page/report.html with style, facts and scripts in the places that it names. */
#include "report/report.h"

/* The files of page/, as the build has read them. */
typedef struct PagePart {
  const char *name, *text;
} PagePart;

static const PagePart parts[] = {
#include "report_page.inc"
};

/* No text of the facts can end the element that they are in: '<' is an escape. In JSON it only
 * stands in strings. */
static void append_facts(StrView json, StrBuf *out) {
  size_t from = 0;
  for (size_t i = 0; i < json.size; i++) {
    if (json.data[i] != '<')
      continue;
    strbuf_append(out, (StrView){json.data + from, i - from});
    strbuf_append(out, SV("\\u003c"));
    from = i + 1;
  }
  strbuf_append(out, (StrView){json.data + from, json.size - from});
}

/* Appends what comes before the mark, and leaves what follows it. */
static void append_up_to(const char **text, const char *mark, StrBuf *out) {
  const char *at = strstr(*text, mark);
  if (!at)
    BUG("the page has no %s", mark);
  strbuf_append(out, (StrView){*text, (size_t)(at - *text)});
  *text = at + strlen(mark);
}

void report_page(StrView json, StrBuf *out) {
  const char *html = parts[0].text;
  append_up_to(&html, "/* style */", out);
  strbuf_append(out, sv_from(parts[1].text));
  append_up_to(&html, "/* facts */", out);
  append_facts(json, out);
  append_up_to(&html, "/* scripts */", out);
  for (size_t i = 2; i < COUNT_OF(parts); i++)
    strbuf_append(out, sv_from(parts[i].text));
  strbuf_append(out, sv_from(html));
}
