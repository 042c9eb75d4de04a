/**
 * After so many deletions a collection of entries that come and go starts anew.
 *
 * V8 keeps the entries of a `Map` or `Set` in a table. When deleted entries fill it, the others move to a new table, and the old one
 * refers to the new one, for iterators that still read it (`src/objects/ordered-hash-table.h` in V8). A table that has become old is
 * collected in a full collection only. Until then it keeps all later tables alive, with the entries that they had: every quick collection
 * finds them alive, and copies them. That took a quarter of the CPU of a lock. A new `Map` is no successor of a table.
 */
export const MOST_DELETIONS = 256;
