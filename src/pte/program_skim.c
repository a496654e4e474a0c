/* See program.h. Reads the fields that etc does not use, so that damage in them is found: the
 * runtime's loader verifies them, too, and refuses such a file. */
#include "pte/program_internal.h"

enum { FRAME_FILE, FRAME_LINE, FRAME_NAME, FRAME_CONTEXT };

static void skim_vectors(FbVector tables, uint16_t id, uint32_t element_size) {
  for (uint32_t i = 0; i < tables.count && !tables.r->fault; i++)
    (void)fb_vector(fb_item_table(tables, i), id, element_size);
}

static void skim_frames(FbVector lists) {
  for (uint32_t i = 0; i < lists.count && !lists.r->fault; i++) {
    FbVector frames = fb_tables(fb_item_table(lists, i), 0);
    for (uint32_t k = 0; k < frames.count && !lists.r->fault; k++) {
      FbTable frame = fb_item_table(frames, k);
      (void)fb_text(frame, FRAME_FILE);
      (void)fb_text(frame, FRAME_NAME);
      (void)fb_text(frame, FRAME_CONTEXT);
      (void)fb_i32(frame, FRAME_LINE, 0);
    }
  }
}

void skim_chain(FbTable chain) {
  (void)fb_vector(chain, CHAIN_INPUTS, 4);
  (void)fb_vector(chain, CHAIN_OUTPUTS, 4);
  skim_frames(fb_tables(chain, CHAIN_STACKTRACE));
}

void skim_plan(FbTable plan, StrView *inputs, StrView *outputs) {
  FbTable container = fb_table(plan, PLAN_CONTAINER_META_TYPE);
  *inputs = fb_text(container, CONTAINER_INPUTS);
  *outputs = fb_text(container, CONTAINER_OUTPUTS);
  FbVector devices = fb_tables(plan, PLAN_NON_CONST_BUFFER_DEVICE);
  for (uint32_t i = 0; i < devices.count && !plan.r->fault; i++)
    (void)fb_item_table(devices, i);
}

void skim_tensor(FbTable tensor, FbTable extra) {
  (void)fb_u8(tensor, TENSOR_REQUIRES_GRAD, 0);
  (void)fb_u8(tensor, TENSOR_LAYOUT, 0);
  (void)fb_u64(extra, EXTRA_MUTABLE_SEGMENT, 0);
  (void)fb_u8(extra, EXTRA_DEVICE_TYPE, 0);
  (void)fb_u8(extra, EXTRA_DEVICE_INDEX, 0);
}

void skim_program(FbTable root) {
  skim_vectors(fb_tables(root, PROGRAM_CONSTANT_BUFFER), INLINE_DATA, 1);
  skim_vectors(fb_tables(root, PROGRAM_BACKEND_DELEGATE_DATA), INLINE_DATA, 1);
  skim_vectors(fb_tables(root, PROGRAM_MUTABLE_DATA_SEGMENTS), SUBSEGMENT_OFFSETS, 8);
}
