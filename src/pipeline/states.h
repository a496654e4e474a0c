/* States: pairs of an input and an output of a model that become memory which lives between
 * calls. */
#ifndef ETC_PIPELINE_STATES_H
#define ETC_PIPELINE_STATES_H

#include "pipeline/session.h"

/* For states_name: the options of the method that is imported. */
typedef struct StatesSearch {
  const Session *s;
  const MethodOptions *options;
} StatesSearch;

/* Whether --state could mean that input; user: a StatesSearch. */
bool states_name(void *user, StrView input);
/* Makes the inputs that --state names states, and the outputs that belong to them what is written
 * into them at the end of a call. Every flag must fit one of the methods; what does not fit is
 * reported. The graphs are at the level aten. */
Status states_bind(Session *s);
/* What the name of the length of states that grow ends with. */
#define STATE_LENGTH ".length"

/* A state of a method, and the state that is its length; 0: its size is fixed. */
typedef struct BoundState {
  const Graph *g;
  NameId name, length;
} BoundState;

typedef struct BoundStates {
  BoundState *items;
  uint32_t count;
} BoundStates;

/* Reports states that cannot be shared (--share-state) because their lengths are not: they grow
 * with others of which only one method has them, or that are not shared. */
Status states_check_growth(Session *s, const BoundStates *bound);
/* Of a program that was read: declares shared what its methods have at one place under one name. */
void states_find_shared(Session *s);
/* Moves the states of several methods apart, so that no method writes over those of another one,
 * and those that --share-state names to one place, where they have the same type and contents
 * (reported if not). The graphs are planned. */
Status states_place(Session *s);

#endif
