// Decides whether the state after a crash is legal (docs/crash-model.md).
//
// The promise has two parts. An operation survives only with all operations that reached the file
// system before it. All operations that an fsync made durable survive. A writer's operations reach
// the file system one after another, so the tree below its directory must be the result of its
// first n operations: a *prefix*. The order between operations of two writers is known if one
// operation ended before the other began.
//
// The content of a file may differ from that of the prefix in one case:
//
// - Data that was written but not yet written back (by fsync or close) is in the kernel's writeback
//   cache. It reaches siltfs page by page, in any order, at any time until fsync or close returns.
//   Each page of such a file may be the old or the new page. A page behind the file's old end may
//   hold the beginning of the new page, followed by zeros.
//
// fsync of a file promises the file and all operations before the file's last change. It does not
// promise operations between that change and the fsync.
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
  // Lost or mixed-up contents, a sentence for each; empty if there are none.
  std::vector<std::string> losses;
  // The state of each writer's tree, as the base of its next history. Set only if nothing was lost.
  std::vector<Tree> states;
  // Numbers of operations without a promise: kept_unasked survived, operations_gone did not.
  uint64_t kept_unasked = 0;
  uint64_t operations_gone = 0;
  // Number of files in which some pages not yet written back are missing, although later pages are
  // present.
  uint64_t torn_tails = 0;
};

// Compares the observed trees with the histories. If `everything` is set (after a clean unmount),
// no operation may be missing.
Verdict Judge(const std::vector<Testimony>& testimonies, bool everything);

// Returns whether `observed` is a legal state of a file that held `content` and was overwritten
// with `dirty`.
bool PagesMatch(ByteView content, ByteView dirty, ByteView observed);

}  // namespace siltfs::killtest
