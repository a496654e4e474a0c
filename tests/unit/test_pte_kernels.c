/* Lists of kernels: names that a file may hold, as plain text in YAML only where they are. */
#include "pte/kernels.h"

#include "unit.h"

static char path[] = "a.pte";

static void add(KernelList *l, StrView *names, uint32_t count) {
  PteMethod method = {.operators = names, .operator_count = count};
  kernel_list_add(l, &(PteProgram){.methods = &method, .method_count = 1, .file = {.path = path}});
}

static void quotes_odd_names(void **state) {
  StrView names[] = {SV("aten::add.out"), SV("a::b\0c"), SV("my::op-2"), SV("12:30")};
  KernelList list;
  StrBuf out = {0};
  kernel_list_init(&list);
  add(&list, names, COUNT_OF(names));
  kernel_list_yaml(&list, &out);
  assert_null(memchr(out.data, '\0', out.size));
  assert_contains(strbuf_cstr(&out), "  aten::add.out:");
  assert_contains(strbuf_cstr(&out), "  \"a::b\\u0000c\":");
  assert_contains(strbuf_cstr(&out), "  \"my::op-2\":");
  assert_contains(strbuf_cstr(&out), "  \"12:30\":");
  strbuf_release(&out);
  kernel_list_release(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quotes_odd_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
