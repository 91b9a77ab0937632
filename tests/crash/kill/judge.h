// Decides whether the state after a crash is legal (docs/crash-model.md).
//
// The promise: the file system has the state after some of the operations that reached it, each one
// only with all earlier ones, and with all that an fsync made durable. A writer's operations reach
// it one after another, so the tree below its directory must be the result of its first n
// operations: a *prefix*. The order between writers is known if one operation ended before another
// began. The order is exact except for this:
//
// - Data that was written but not yet written back (by fsync or close) is in the kernel's writeback
//   cache. It reaches siltfs page by page, in any order, at any time until fsync or close returns.
//   Every page of such a file may be the old or the new one. A page behind the file's old end may
//   hold the beginning of the new page, followed by zeros.
//
// fsync of a file promises the file and all operations before its last change, but not those
// between that change and the fsync.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/crash/kill/observed_tree.h"
#include "tests/crash/kill/tree.h"

namespace siltfs::killtest {

// One writer's input for the judgement.
struct Testimony {
  std::string writer;
  const Tree* base = nullptr;  // the tree before the history
  const History* history = nullptr;
  const ObservedTree* observed = nullptr;
};

struct Verdict {
  // Losses and mix-ups, a sentence each; empty if there are none.
  std::vector<std::string> losses;
  // By writer: the state, as the base of the next history. Only if nothing was lost.
  std::vector<Tree> states;
  // Operations without a promise that survived, and those that did not.
  uint64_t kept_unasked = 0;
  uint64_t operations_gone = 0;
  // Files in which some pages not yet written back are missing before others that are present.
  uint64_t torn_tails = 0;
};

// After a clean unmount (`everything`) nothing may be missing.
Verdict Judge(const std::vector<Testimony>& testimonies, bool everything);

// Whether `observed` is a legal state of a file that held `content` and was overwritten with
// `dirty`.
bool PagesMatch(ByteView content, ByteView dirty, ByteView observed);

}  // namespace siltfs::killtest
