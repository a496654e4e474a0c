/* Samples for calibration: arrays in .npz or .npy files, read one sample at a time.
 *
 * PATH is
 * - an .npz file (stored or deflated): an array an input, named after it; others are passed over;
 * - an .npy file, for graphs with one input;
 * - a folder of .npz files, which follow each other in the order of their names;
 * - a folder of .npy files, NAME.npy for each input; or, for graphs with one input, files of any
 *   name, which follow each other.
 * The first axis of an array counts samples. Of an input [b, ...], each sample takes b rows (1
 * where b is symbolic and can be 1, else its lower bound); an array with one axis more than the
 * input has one entry a sample. A file of a folder whose arrays have just the shapes of the inputs
 * is one sample. Integers are widened to the input's type; nothing else is converted. */
#ifndef ETC_QUANT_DATASET_H
#define ETC_QUANT_DATASET_H

#include "interp/npy.h"
#include "ops/kernel.h"

typedef struct DataSet DataSet;

/* Which samples are read: those whose number k has k % count == index. {0, 1}: all. */
typedef struct DataShard {
  uint32_t index, count;
} DataShard;

/* Opens path for the inputs of g. Reads directories of archives and headers of arrays, no values.
 * Errors (reported, with file and array): a file that cannot be read or is no array or archive,
 * truncated, encrypted, by an unknown method, with entries that overlap or cannot have the size
 * they claim; arrays that are missing, hold Python objects, have another type or shape than the
 * input or other numbers of samples than each other; no sample at all. */
Status dataset_open(DataSet **out, const Graph *g, const char *path, DataShard shard,
                    DiagSink *sink);
/* set may be NULL. */
void dataset_close(DataSet *set);

/* The header of the array for an input in the first file of a set: for sizes that a graph needs
 * before it is there. *found is false when there is no such array. Errors (reported): files and
 * arrays that cannot be read. */
Status dataset_peek(const char *path, StrView input, Arena *arena, DiagSink *sink, NpyHead *head,
                    bool *found);

/* Every file that a set may be read from: path itself, or the arrays and archives of a folder, in
 * order; paths in arena, the one that is given as it is. Errors (reported): a folder that cannot be
 * read. */
Status dataset_files(const char *path, Arena *arena, DiagSink *sink, const char ***files,
                     uint32_t *count);

/* Samples of the whole set, and of the shard. */
uint64_t dataset_total(const DataSet *set);
/* A shard of at most `most` of `total` samples, evenly spread. */
DataShard dataset_some(uint64_t total, uint32_t most);
/* Opens path as dataset_open does, for that shard of its samples. */
Status dataset_open_some(DataSet **out, const Graph *g, const char *path, uint32_t most,
                         DiagSink *sink);
uint64_t dataset_count(const DataSet *set);
/* The next sample of the shard: one tensor an input of g, in order, data in arena. *more is false,
 * and no tensor made, when there is none left. Errors (reported): what cannot be read, checksums
 * that do not match, NaN and infinities; after one, or when memory ran out, no sample is left. Not
 * for several threads at a time. */
Status dataset_next(DataSet *set, Arena *arena, Tensor *tensors, bool *more);
/* Warns (W0844) where the samples that dataset_next gave say nothing: no input of floats varies in
 * them. Of one alone, a mask for instance, that is as it should be, and of a single number. */
void dataset_warn_constant(const DataSet *set);
/* Reports which sample it was, the k-th of those that dataset_next gave, on which the model cannot
 * run, behind the messages that say why. */
void dataset_refused(const DataSet *set, uint64_t k);
/* A hash of the names, sizes and checksums of what is in the set: of all samples, not of the shard.
 */
uint64_t dataset_hash(const DataSet *set);

#endif
