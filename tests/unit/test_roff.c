/* What manual pages are made of: escapes, and Markdown block by block (tools/manual). */
#include "unit.h"

#include "manual/roff.h"

static void check_text(const char *text, const char *expected) {
  StrBuf out = {0};
  roff_text(&out, sv_from(text));
  assert_string_equal(strbuf_cstr(&out), expected);
  strbuf_release(&out);
}

static void check_markdown(const char *text, const char *expected) {
  StrBuf out = {0};
  roff_markdown(&out, sv_from(text));
  assert_string_equal(strbuf_cstr(&out), expected);
  strbuf_release(&out);
}

static void test_text(void **state) {
  check_text("a-b 'c' \"d\" `e` ^ ~", "a\\-b \\(aqc\\(aq \\(dqd\\(dq \\(gae\\(ga \\(ha \\(ti");
  check_text("\\n", "\\en");
  check_text(".TH\n.a.b", "\\&.TH\n\\&.a.b"); /* no request */
  check_text("'x", "\\(aqx");
  check_text("\xe2\x80\xa6\xf0\x9f\x98\x80", "\\[u2026]\\[u1F600]");
  check_text("\xff", "\xff"); /* no UTF-8: as it is */
}

static void test_spans(void **state) {
  check_markdown("a `b c` d\n", ".PP\na \\fBb c\\fR d\n");
  check_markdown("**a** `b\nc` [d](e.md) [f] `g\n", ".PP\n\\fBa\\fR \\fBb\nc\\fR d [f] \\(gag\n");
  check_markdown("\xc3\xa9\n", ".PP\n\\[u00E9]\n");
}

static void test_blocks(void **state) {
  check_markdown("# title\n\nfirst\n\nsecond\n", ".PP\nfirst\n.PP\nsecond\n");
  check_markdown("## Two words\nfirst\n\nsecond\n", ".SH TWO WORDS\nfirst\n.PP\nsecond\n");
  check_markdown("- a\n  b\n- c\n", ".IP \\(bu 3\na\nb\n.IP \\(bu 3\nc\n");
  check_markdown("a\n```\n.b\n\n  c-d\n```\n",
                 ".PP\na\n.PP\n.RS 4\n.nf\n\\&.b\n\n  c\\-d\n.fi\n.RE\n");
  check_markdown("## A\n```\nb\n", ".SH A\n.RS 4\n.nf\nb\n.fi\n.RE\n"); /* not closed */
}

static void test_tables(void **state) {
  check_markdown("| k | v |\n|---|---|\n| `a` | b \\| c |\n| d |\n",
                 ".TP\n\\fBa\\fR\nb | c\n.TP\nd\n\n");
  check_markdown("| k | v | w |\n|---|---|---|\n| a | b | c |\n", ".TP\na\nb; c\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_spans),
      cmocka_unit_test(test_blocks),
      cmocka_unit_test(test_tables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
