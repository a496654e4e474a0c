/* Orders of nodes that need less memory, on plain lists. */
#ifndef ETC_PASSES_EXECUTORCH_SCHEDULE_H
#define ETC_PASSES_EXECUTORCH_SCHEDULE_H

#include "support/arena.h"

#define SCHEDULE_MAX_NODES 4096

typedef struct ScheduleBuffer {
  uint64_t size;
  uint32_t uses; /* by so many nodes; the caller of the program is one more */
  bool given;    /* there before the first node: an input */
} ScheduleBuffer;

typedef struct ScheduleUse {
  uint32_t buffer;
  bool in_place; /* the first buffer that the node defines may reuse this one */
} ScheduleUse;

typedef struct ScheduleNode {
  const uint32_t *successors; /* nodes that must come later, each once */
  const ScheduleUse *uses;    /* each buffer once */
  const uint32_t *defines;
  uint32_t successor_count, use_count, define_count;
  uint32_t predecessor_count; /* nodes that must come before */
} ScheduleNode;

/* Nodes in an order that is possible. */
typedef struct ScheduleProblem {
  const ScheduleNode *nodes;
  const ScheduleBuffer *buffers;
  uint32_t node_count, buffer_count; /* node_count at most SCHEDULE_MAX_NODES */
  uint64_t always;                   /* bytes that are in use all the time, beside the buffers */
} ScheduleProblem;

/* The most bytes in use at one time when the nodes run in that order. */
uint64_t schedule_peak(const ScheduleProblem *p, const uint32_t *order, Arena *scratch);

/* No order needs less: what a node reads and writes is there while it runs. */
uint64_t schedule_bound(const ScheduleProblem *p);

/* Looks for an order with a lower peak than that of the nodes as they are; false: none was found.
 * The nodes are taken apart where one comes before or after each of the others, and each part whose
 * peak counts is searched on its own. The work is limited. */
bool schedule_search(const ScheduleProblem *p, Arena *scratch, uint32_t *order);

/* The same of all nodes at once; a peak of `enough` will do. *work: how much has been done, which
 * grows with the square of the nodes; nothing is looked for when it is too much. */
bool schedule_search_whole(const ScheduleProblem *p, uint64_t enough, Arena *scratch,
                           uint32_t *order, uint64_t *work);

#endif
