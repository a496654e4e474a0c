/* --cache DIR: programs by what they are made from, so that the same is not lowered twice.
 *
 * The key is a hash of the version and the sources of etc, of the options that count, and of the
 * contents of every file that is read; names and places of files do not count. An entry is
 * KEY.pte, the program, KEY.json, its map, and KEY.ptd, its weights, if --map and
 * --external-weights were given (which is a part of the key), and KEY.txt with their hashes and the
 * figures of the summary, which is written last: without it there is no entry. Both appear whole or
 * not at all, so any number of processes may share a folder; two that make the same entry write the
 * same bytes.
 *
 * Models are imported before the folder is asked, since only then all that is read is known: what
 * is wrong with a model or an option is said in any case. A lowering that warns later than that is
 * not kept, so that a hit hides nothing. */
#ifndef ETC_PIPELINE_CACHE_H
#define ETC_PIPELINE_CACHE_H

#include "pipeline/session.h"

/* After the stage import: looks for the program. *hit: it is there, and all that is left to do is
 * session_cache_deliver; false without a cache. A folder that cannot be made or written to is a
 * warning. Errors (reported): a file instead of a folder; an entry that is damaged; an input that
 * changed. */
Status session_cache_find(Session *s, bool *hit);
/* In the stage emit: where the program is to be written so that it becomes an entry; NULL when it
 * is not kept. */
const char *session_cache_path(const Session *s);
/* After the program was written there: makes it an entry. */
Status session_cache_keep(Session *s);
/* The message, in memory of the session, if it is about a file of the entry that was to be made;
 * else NULL: the cache is not at fault. */
const char *session_cache_fault(Session *s, const StrBuf *message);
/* Warns, for that reason, that the program is not kept; from now on it is as if there were no
 * cache. */
Status session_cache_give_up(Session *s, const char *why);
/* In the stage emit: where the file of --external-weights is to be written so that it becomes a
 * part of the entry; NULL when the program is not kept, or there is no such file. */
const char *session_cache_external(const Session *s);
/* After a hit, or when it was kept: copies what the entry has beside the program (a map, weights)
 * to where the user wants it. */
Status session_cache_deliver_sides(Session *s);
/* Copies the program of the entry to the output. */
Status session_cache_deliver(Session *s, const char *output);
/* When all is done or has failed: a folder that was made and has nothing in it goes. */
void session_cache_end(const Session *s);

#endif
