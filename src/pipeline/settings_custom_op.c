/* --custom-op DOMAIN.OP=SCHEMA: an operator that a kernel of the user's runtime computes. */
#include "onnx/custom_op.h"
#include "pipeline/settings.h"

EtcStatus session_set_custom_op(Session *s, StrView value) {
  static const char hint[] = "write --custom-op 'DOMAIN.OP=NAMESPACE::NAME.out(Tensor x, …, *, "
                             "Tensor(a!) out) -> Tensor(a!)'";
  StrView name, schema;
  OnnxTranslator *translator = ARENA_NEW(&s->arena, OnnxTranslator);
  if (!session_split(value, '=', &name, &schema) || schema.size == 0)
    return session_usage(
        s, "--custom-op", hint,
        "--custom-op " SV_FMT ": an operator and the schema of a kernel are needed", SV_ARG(value));
  size_t dot = name.size;
  while (dot > 0 && name.data[dot - 1] != '.')
    dot--;
  if (dot < 2 || dot == name.size)
    return session_usage(s, "--custom-op", hint, "'" SV_FMT "' is no DOMAIN.OP", SV_ARG(name));
  StrView domain = {name.data, dot - 1}, op = {name.data + dot, name.size - dot};
  domain = sv_eq_str(domain, "ai.onnx") ? SV("") : domain;
  const char *fault = onnx_custom_op(domain, op, schema, &s->arena, translator);
  if (fault)
    return session_usage(s, "--custom-op", hint, "%s", fault);
  if (registry_translates(&s->registry, translator))
    return session_usage(s, "--custom-op", "give each operator one kernel",
                         "operator '" SV_FMT "' has a translator already", SV_ARG(name));
  registry_add_translator(&s->registry, translator, arena_strdup(&s->arena, value));
  return ETC_OK;
}
