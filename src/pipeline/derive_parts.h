/* What the files of --derive llm share: its settings, and the role of each input of a decoder. */
#ifndef ETC_PIPELINE_DERIVE_PARTS_H
#define ETC_PIPELINE_DERIVE_PARTS_H

#include "pipeline/constant_methods.h"
#include "pipeline/derive.h"

typedef enum DeriveKey {
  KEY_CONTEXT,
  KEY_PREFILL,
  KEY_BOS,
  KEY_EOS,
  KEY_TOKENS,
  KEY_MASK,
  KEY_POSITIONS,
  KEY_PAST,
  KEY_PRESENT,
  KEY_LOGITS,
  KEY_COUNT
} DeriveKey;

struct Derive {
  StrView values[KEY_COUNT];
  int64_t context, prefill;
};

enum { DERIVE_LENGTH_MAX = 1 << 24 };

typedef enum Role { ROLE_NONE, ROLE_TOKENS, ROLE_MASK, ROLE_POSITIONS, ROLE_PAST } Role;

/* What an input of this name is to a decoder. */
Role derive_role(const struct Derive *d, StrView name);
/* The ids in 2 or 2+3, for get_bos_id and get_eos_ids; of the session's memory. Wrong usage is
 * reported. */
EtcStatus derive_ids(Session *s, const struct Derive *d, DeriveKey key, ConstantItem **items,
                     uint32_t *count);
/* Reports that the model has no input for the tokens, or none for the cache. */
Status derive_missing(Session *s, const struct Derive *d, Role role);

#endif
