// Decides whether what is there after a crash may be there (docs/crash-model.md).
//
// What is promised: the file system is what it was after some of the operations that reached it,
// none of them without all those before it, and with all that an fsync made durable. A writer's
// operations reach it one after another, so what is below its directory must be what the first so
// many of them make: a *prefix*. Between writers the order is known where one operation ended
// before another began. But for these the order is exact:
//
// - What was written and is not yet settled (fsync or close returned) lies in the kernel's
// writeback
//   cache and reaches siltfs page by page, in any order, at any time until it is settled. Of such a
//   file every page may be the old or the new one, and what is behind its old end the beginning of
//   the page followed by zeros.
//
// fsync of a file promises the file and all operations before the last change of that file, not
// those between that change and the fsync.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/crash/kill/observed_tree.h"
#include "tests/crash/kill/tree.h"

namespace siltfs::killtest {

// A writer's part in the judgement.
struct Testimony {
  std::string writer;
  const Tree* base = nullptr;  // what was there before the history
  const History* history = nullptr;
  const ObservedTree* observed = nullptr;
};

struct Verdict {
  // What was lost or mixed up, a sentence each; empty if all is well.
  std::vector<std::string> losses;
  // By writer: the state, as a base for what follows. Only if nothing was lost.
  std::vector<Tree> states;
  // Operations that survived though nothing demanded it, and that did not.
  uint64_t kept_unasked = 0;
  uint64_t operations_gone = 0;
  // Files with some unsettled pages missing before others that are there.
  uint64_t torn_tails = 0;
};

// After a clean unmount (`everything`) nothing at all may be missing.
Verdict Judge(const std::vector<Testimony>& testimonies, bool everything);

// Whether `observed` may be there of a file that held `content` and over which `dirty` was written.
bool PagesMatch(ByteView content, ByteView dirty, ByteView observed);

}  // namespace siltfs::killtest
