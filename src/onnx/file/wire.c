/* Reading the wire format (see wire.h). Every loop is bounded by the reader's end and by the
 * longest legal varint. */
#include "onnx/file/wire.h"

enum { VARINT_MAX = 10, SHORT_VARINT_MAX = 5, FIELD_NUMBER_SHIFT = 3 };

WireFault wire_varint(WireReader *reader, unsigned max_bytes, uint64_t *out) {
  const uint8_t *p = reader->next;
  uint64_t value = 0;
  for (unsigned i = 0; i < max_bytes; i++) {
    if (p + i == reader->end)
      return WIRE_TRUNCATED;
    uint8_t byte = p[i];
    if (i == VARINT_MAX - 1 && byte > 1) /* bit 64 and above */
      return WIRE_VARINT_TOO_LONG;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      reader->next = p + i + 1;
      *out = value;
      return WIRE_OK;
    }
  }
  return WIRE_VARINT_TOO_LONG;
}

/* Nearly all tags and lengths have one byte. */
static inline WireFault short_varint(WireReader *reader, uint64_t *out) {
  if (reader->next != reader->end && *reader->next < 0x80) {
    *out = *reader->next++;
    return WIRE_OK;
  }
  return wire_varint(reader, SHORT_VARINT_MAX, out);
}

static WireFault read_payload(WireReader *at, WireField *field) {
  WireFault fault = WIRE_OK;
  field->payload = at->next;
  switch (field->type) {
  case WIRE_VARINT:
    fault = wire_varint(at, VARINT_MAX, &field->varint);
    field->size = (uint64_t)(at->next - field->payload);
    return fault;
  case WIRE_FIXED64:
    field->size = 8;
    break;
  case WIRE_FIXED32:
    field->size = 4;
    break;
  case WIRE_BYTES:
    fault = short_varint(at, &field->size);
    if (fault != WIRE_OK)
      return fault;
    field->payload = at->next;
    if (field->size > (uint64_t)(at->end - at->next))
      return WIRE_LENGTH_PAST_END;
    break;
  case WIRE_GROUP_START:
  case WIRE_GROUP_END:
    return WIRE_GROUP;
  default:
    return WIRE_TYPE_UNKNOWN;
  }
  if (field->size > (uint64_t)(at->end - at->next))
    return WIRE_TRUNCATED;
  at->next += field->size;
  return WIRE_OK;
}

WireFault wire_next(WireReader *reader, WireField *field) {
  WireReader at = *reader;
  uint64_t tag;
  field->start = at.next;
  WireFault fault = short_varint(&at, &tag);
  if (fault != WIRE_OK)
    return fault;
  if (tag > UINT32_MAX)
    return WIRE_VARINT_TOO_LONG;
  field->number = (uint32_t)tag >> FIELD_NUMBER_SHIFT;
  field->type = (WireType)(tag & 7);
  if (field->number == 0)
    return WIRE_FIELD_NUMBER;
  fault = read_payload(&at, field);
  if (fault == WIRE_OK)
    *reader = at;
  return fault;
}

WireFault wire_count_varints(const uint8_t *data, uint64_t size, uint64_t *count) {
  uint64_t n = 0;
  unsigned run = 0; /* bytes of the varint so far */
  for (uint64_t i = 0; i < size; i++) {
    run++;
    if (run == VARINT_MAX && data[i] > 1)
      return WIRE_VARINT_TOO_LONG;
    if (data[i] < 0x80) {
      n++;
      run = 0;
    }
  }
  *count = n;
  return run == 0 ? WIRE_OK : WIRE_TRUNCATED;
}

const char *wire_fault_text(WireFault fault) {
  static const char *const texts[] = {
      [WIRE_OK] = "nothing wrong",
      [WIRE_TRUNCATED] = "a value that is cut off by the end of its message",
      [WIRE_VARINT_TOO_LONG] = "a number with more bytes than protobuf allows",
      [WIRE_LENGTH_PAST_END] = "a length that reaches past the end of its message",
      [WIRE_GROUP] = "a group (wire type 3 or 4), which ONNX does not use",
      [WIRE_TYPE_UNKNOWN] = "a wire type that protobuf does not define",
      [WIRE_FIELD_NUMBER] = "field number 0"};
  return texts[fault];
}
