/* etc passes: the pipeline as it is in the tables. */
#include "command.h"
#include "support/json.h"

/* Those of plug-ins run where --pass puts them. */
static void print_plugins(const Registry *r, StrBuf *out) {
  for (uint32_t i = 0; i < r->pass_count; i++)
    if (r->passes[i]->plugin)
      strbuf_printf(out, "%s %-24s   %s (plug-in '%s')\n", stage_name(r->passes[i]->stage),
                    r->passes[i]->name, r->passes[i]->summary, r->passes[i]->plugin);
}

static void print_text(StrBuf *out) {
  for (int stage = 0; stage < STAGE_COUNT; stage++) {
    strbuf_printf(out, "%-14s %-11s %s\n", stage_name((StageId)stage),
                  level_name(stage_level((StageId)stage)), stage_summary((StageId)stage));
    for (uint32_t i = 0; i < pass_table_size; i++)
      if (pass_table[i].stage == (StageId)stage)
        strbuf_printf(out, "  %-24s %s %s\n", pass_table[i].name,
                      pass_table[i].skippable ? " " : "!", pass_table[i].summary);
  }
  strbuf_append(out, SV("\n!: cannot be left out (--skip-pass, --bisect-limit)\n"));
}

static void print_pass_json(JsonWriter *w, const PassRow *row) {
  json_open_object(w);
  json_named_string(w, "pass", sv_from(row->name));
  json_named_string(w, "from", sv_from(level_name(row->level_in)));
  json_named_string(w, "to", sv_from(level_name(row->level_out)));
  json_named_bool(w, "skippable", row->skippable);
  json_named_string(w, "summary", sv_from(row->summary));
  json_close_object(w);
}

static void print_json(StrBuf *out) {
  JsonWriter w;
  json_init(&w, out, true);
  json_open_array(&w);
  for (int stage = 0; stage < STAGE_COUNT; stage++) {
    json_open_object(&w);
    json_named_string(&w, "stage", sv_from(stage_name((StageId)stage)));
    json_named_string(&w, "level", sv_from(level_name(stage_level((StageId)stage))));
    json_named_string(&w, "summary", sv_from(stage_summary((StageId)stage)));
    json_named_array(&w, "passes");
    for (uint32_t i = 0; i < pass_table_size; i++)
      if (pass_table[i].stage == (StageId)stage)
        print_pass_json(&w, &pass_table[i]);
    json_close_array(&w);
    json_close_object(&w);
  }
  json_close_array(&w);
  strbuf_append_char(out, '\n');
}

int cmd_passes(const CommandLine *line) {
  TRY(expect_arguments(line, 0, ""));
  TRY(command_line_apply(line));
  StrBuf text = {0};
  if (command_line_has(line, OPT_JSON))
    print_json(&text);
  else
    print_text(&text);
  if (!command_line_has(line, OPT_JSON))
    print_plugins(&line->session->registry, &text);
  return print_and_release(line, &text);
}
