/* Where values of the IR graph are in an XNNPACK graph: a map by ValueId that costs what is in it,
 * not what the IR graph has. */
#ifndef ETC_BACKENDS_XNNPACK_PLACES_H
#define ETC_BACKENDS_XNNPACK_PLACES_H

#include "backends/xnnpack/moves.h"

enum { PERMUTED_PARTS = 3 };

/* A value whose dim i is stored at axis axis[i] of id. Axes of id that belong to no dim of the
 * value are "extra"; they have size 1. XNNPACK's reshape infers one dim, so a view that merges
 * several dynamic dims cannot be a reshape: such a dim is stored "unmerged", as the consecutive
 * axes axis[i] to axis[i] + more[i] of id, whose sizes are part[i], until a view splits it again.
 */
typedef struct Permuted {
  XnnId id;
  uint8_t axis[XNN_MAX_RANK], more[XNN_MAX_RANK];
  SymInt part[XNN_MAX_RANK][PERMUTED_PARTS];
  NodeId view; /* the last one that merged dims which are stored unmerged */
} Permuted;

/* 1 + XnnId in each layout, 0 when it is not there. */
typedef struct Place {
  ValueId v;
  uint32_t plain, nhwc;
  uint32_t vertex;          /* of the node that makes it: see plan.c */
  uint32_t slot;            /* where the table names it */
  bool in_nhwc;             /* as it was planned */
  bool is_output;           /* of the delegate */
  const Permuted *permuted; /* NULL: it is not */
  const Moves *moves;       /* it is these steps; NULL: it is computed */
} Place;

typedef struct PlaceSlot {
  ValueId v;
  uint32_t item; /* 1 + index; 0: free */
} PlaceSlot;

typedef struct Places {
  Place *items;
  PlaceSlot *slots;
  uint32_t count, capacity, slot_count;
} Places;

void places_release(Places *p);
void places_clear(Places *p); /* costs what was in it */
/* NULL when v is nowhere. */
const Place *places_find(const Places *p, ValueId v);
/* The place of v, made when there is none. Good until the next call. */
Place *places_make(Places *p, ValueId v);

#endif
