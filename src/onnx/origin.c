/* Where a node comes from in the source of the model, as torch.onnx notes it in metadata_props: the
 * names of the modules around it, "['', 'encoder', 'encoder.0', 'linear']" with the node's own name
 * last, and the stack of calls, as Python prints it, innermost last. Kept is one short text, such
 * as "encoder.0, model.py:12, in forward: x = self.linear(x)". */
#include "onnx/import_state.h"

enum { ORIGIN_MAX = 200 };

/* The last item of a list of quoted texts, which is taken off it. */
static StrView take_last(StrView *list) {
  size_t end = list->size;
  while (end > 0 && list->data[end - 1] != '\'' && list->data[end - 1] != '"')
    end--;
  size_t begin = end > 0 ? end - 1 : 0;
  while (begin > 0 && list->data[begin - 1] != list->data[end - 1])
    begin--;
  StrView item = {list->data + begin, end > begin ? end - begin - 1 : 0};
  list->size = begin > 0 ? begin - 1 : 0;
  return item;
}

static StrView trim(StrView text) {
  while (text.size && strchr(" \t\r\n", text.data[0]))
    text = (StrView){text.data + 1, text.size - 1};
  while (text.size && strchr(" \t\r\n", text.data[text.size - 1]))
    text.size--;
  return text;
}

/* The last line of a text, which is taken off it. */
static StrView take_line(StrView *text) {
  *text = trim(*text);
  size_t begin = text->size;
  while (begin > 0 && text->data[begin - 1] != '\n')
    begin--;
  StrView line = {text->data + begin, text->size - begin};
  text->size = begin;
  return trim(line);
}

/* `File "path/model.py", line 12, in forward` as `model.py:12, in forward`. */
static void append_frame(StrBuf *out, StrView line) {
  StrView rest = {line.data + 6, line.size - 6};
  const char *quote = memchr(rest.data, '"', rest.size);
  const StrView between = SV("\", line ");
  if (!quote)
    return;
  StrView path = {rest.data, (size_t)(quote - rest.data)};
  rest = (StrView){quote, rest.size - path.size};
  for (size_t i = path.size; i > 0; i--)
    if (path.data[i - 1] == '/' || path.data[i - 1] == '\\') {
      path = (StrView){path.data + i, path.size - i};
      break;
    }
  if (!sv_starts_with(rest, between))
    return;
  strbuf_printf(out, "%s" SV_FMT ":" SV_FMT ": ", out->size ? ", " : "", SV_ARG(path),
                SV_ARG(((StrView){rest.data + between.size, rest.size - between.size})));
}

static void append_call(StrBuf *out, StrView stack) {
  StrView code = take_line(&stack), frame = take_line(&stack);
  if (sv_starts_with(code, SV("File \""))) { /* without the line of source */
    frame = code;
    code = SV("");
  }
  if (sv_starts_with(frame, SV("File \"")))
    append_frame(out, frame);
  else if (code.size && out->size)
    strbuf_append(out, SV(": "));
  strbuf_append(out, code);
}

NameId import_origin(Import *im, const Onnx__NodeProto *node) {
  StrView scopes = SV(""), stack = SV("");
  for (size_t i = 0; i < node->n_metadata_props; i++) {
    StrView key = onnx_text(node->metadata_props[i]->key);
    StrView value = onnx_text(node->metadata_props[i]->value);
    if (sv_eq_str(key, "pkg.torch.onnx.name_scopes"))
      scopes = value;
    else if (sv_eq_str(key, "pkg.torch.onnx.stack_trace"))
      stack = value;
  }
  if (!scopes.size && !stack.size)
    return 0;
  StrBuf text = {0};
  (void)take_last(&scopes);
  strbuf_append(&text, take_last(&scopes));
  append_call(&text, stack);
  StrView origin = {text.data, text.size};
  while (origin.size > ORIGIN_MAX || (origin.size && strchr(": ", origin.data[origin.size - 1])) ||
         (text.size > ORIGIN_MAX && ((unsigned char)text.data[origin.size] & 0xc0) == 0x80))
    origin.size--;
  NameId name = origin.size ? intern_add(&im->ctx->names, origin) : 0;
  strbuf_release(&text);
  return name;
}
