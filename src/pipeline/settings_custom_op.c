/* --custom-op DOMAIN.OP=SCHEMA: an operator that a kernel of the user's runtime computes. */
#include "onnx/custom_op.h"
#include "pipeline/settings.h"

EtcStatus session_set_custom_op(Session *s, StrView value) {
  static const char hint[] = "write --custom-op 'DOMAIN.OP=NAMESPACE::NAME.out(Tensor x, …, *, "
                             "Tensor(a!) out) -> Tensor(a!)'";
  StrView name, schema, domain, op;
  OnnxTranslator *translator = ARENA_NEW(&s->arena, OnnxTranslator);
  if (!session_split(value, '=', &name, &schema) || schema.size == 0)
    return session_usage(
        s, "--custom-op", hint,
        "--custom-op " SV_FMT ": an operator and the schema of a kernel are needed", SV_ARG(value));
  if (!session_split_operator(name, &domain, &op) || !op.size)
    return session_usage(s, "--custom-op", hint, "'" SV_FMT "' is no DOMAIN.OP", SV_ARG(name));
  const char *fault = onnx_custom_op(domain, op, schema, &s->arena, translator);
  if (fault)
    return session_usage(s, "--custom-op", hint, "%s", fault);
  if (registry_translates(&s->registry, translator))
    return session_usage(s, "--custom-op", "give each operator one kernel",
                         "operator '" SV_FMT "' has a translator already", SV_ARG(name));
  registry_add_translator(&s->registry, translator, arena_strdup(&s->arena, value));
  return ETC_OK;
}
