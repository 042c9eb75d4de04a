/**
 * The number of deletions after which a collection of entries that come and go starts anew.
 *
 * V8 keeps the entries of a `Map` or `Set` in a table. When deleted entries fill the table, the others move to a new
 * one. The old table refers to the new one, for iterators that still read it (`src/objects/ordered-hash-table.h` in V8).
 * Only a full collection frees a table that has become old. Until then it keeps all later tables alive, with the entries
 * that they had, and every quick collection copies them. That took a quarter of the CPU of a lock. The table of a new
 * `Map` is the successor of none.
 */
export const MOST_DELETIONS = 256;
