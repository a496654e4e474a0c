/* Compares the values of a graph with those of its quantized form, over a data set. */
#ifndef ETC_QUANT_COMPARE_H
#define ETC_QUANT_COMPARE_H

#include "quant/samples.h"

/* Sums over all elements of a value and all samples. */
typedef struct CompareSums {
  double signal, noise;  /* squares of what it is in floats, and of the difference */
  double other, product; /* squares of what it is quantized, and products of both */
  uint64_t count;        /* elements; those that are not finite in floats are left out */
} CompareSums;

/* A value to compare: in floats and quantized. Each is a tensor of floats that is computed once in
 * a run, not in a branch or a loop. */
typedef struct ComparePair {
  ValueId plain, quantized;
  bool output;     /* `own` is not wanted */
  CompareSums all; /* by a run of the quantized graph */
  CompareSums own; /* by a run in which all pairs before were given their values in floats */
  double effect;   /* noise over signal of the worst output when this value alone is noisy, summed
                      over `effect_samples` samples; 0 of those: not measured */
  uint64_t effect_samples;
} ComparePair;

/* The ratio of signal to noise in dB: infinite without noise, NaN when nothing was compared. */
double compare_sqnr(const CompareSums *sums);
/* The cosine of the angle between both as vectors; 1 when both are 0, NaN when nothing was
 * compared. */
double compare_cosine(const CompareSums *sums);

/* The SQNR of the worst output when this value alone is noisy, in dB; NaN: not measured. */
double compare_effect(const ComparePair *pair);
/* Below, at or above 0: a costs the outputs more than b, or as much and adds more noise to its own
 * value. What was not measured costs nothing. */
int compare_damage(const ComparePair *a, const ComparePair *b);

/* A value of the quantized graph that is given the value it has in floats, for `own`. */
typedef struct CompareForce {
  ValueId plain, quantized;
} CompareForce;

typedef struct Compare {
  const Graph *plain, *quantized; /* with the same inputs; only read */
  ComparePair *pairs;
  uint32_t pair_count;
  const CompareForce *forces; /* results of nodes, beside the pairs that are no outputs */
  uint32_t force_count;
  bool effects; /* those of the pairs are wanted: a run of the graph in floats for each pair, on
                   some samples, as many as cost about twice what the comparison costs */
  uint64_t effect_samples; /* how many those were */
} Compare;

/* Runs both graphs on the samples that set has left (samples_run); of the sample at hand a thread
 * keeps the values in floats. The sums do not depend on the number of threads. */
Status compare_run(Compare *c, DataSet *set, SampleProgress *progress, DiagSink *sink);

#endif
