/* Protocol buffers on the wire, read in place: tags, varints, lengths, nothing of any message type.
 *
 * Bounds of the encoding documentation (protobuf.dev/programming-guides/encoding) and of the C++
 * reader, which both protobuf-c and every ONNX writer keep: a varint has at most 10 bytes and 64
 * bits, a tag or a length at most 5 bytes, field numbers are 1 .. 2^29-1, groups (wire types 3 and
 * 4) are not used by ONNX and are refused. */
#ifndef ETC_ONNX_WIRE_H
#define ETC_ONNX_WIRE_H

#include "support/base.h"

typedef enum WireType {
  WIRE_VARINT = 0,
  WIRE_FIXED64 = 1,
  WIRE_BYTES = 2,
  WIRE_GROUP_START = 3,
  WIRE_GROUP_END = 4,
  WIRE_FIXED32 = 5
} WireType;

typedef enum WireFault {
  WIRE_OK = 0,
  WIRE_TRUNCATED,       /* the message ends inside a tag or a value */
  WIRE_VARINT_TOO_LONG, /* more bytes than a varint, a tag or a length may have */
  WIRE_LENGTH_PAST_END, /* a length that reaches beyond the enclosing message */
  WIRE_GROUP,           /* wire type 3 or 4 */
  WIRE_TYPE_UNKNOWN,    /* wire type 6 or 7 */
  WIRE_FIELD_NUMBER     /* field number 0 */
} WireFault;

/* A position in a message and the message's end. */
typedef struct WireReader {
  const uint8_t *next, *end;
} WireReader;

/* One field. start .. payload is the tag and, for WIRE_BYTES, the length; payload + size is the
 * next field. */
typedef struct WireField {
  const uint8_t *start, *payload;
  uint64_t size;   /* of the payload: bytes of a varint, 8, 4, or the length */
  uint64_t varint; /* the value, of WIRE_VARINT only */
  uint32_t number;
  WireType type;
} WireField;

/* A varint of at most max_bytes bytes. On a fault the reader stands at the varint's first byte. */
WireFault wire_varint(WireReader *reader, unsigned max_bytes, uint64_t *out);
/* The next field; the reader must not be at its end. On a fault the reader stands where it was. */
WireFault wire_next(WireReader *reader, WireField *field);
/* How many varints the bytes hold, when they hold whole varints only. */
WireFault wire_count_varints(const uint8_t *data, uint64_t size, uint64_t *count);
/* What is wrong, for a message: "a length that reaches past the end of its message". */
const char *wire_fault_text(WireFault fault);

#endif
