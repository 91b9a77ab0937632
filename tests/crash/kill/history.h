// What a writer did, in order, and when, by a clock that all writers share: what ended before
// another thing began has reached the file system before it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/kill/content.h"

namespace siltfs::killtest {

using Stamp = uint64_t;
inline constexpr Stamp kNever = std::numeric_limits<Stamp>::max();

class Clock {
 public:
  Stamp Now() { return next_.fetch_add(1); }

 private:
  std::atomic<Stamp> next_{1};
};

enum class OperationKind : uint8_t {
  kMakeDirectory,
  kRemoveDirectory,
  kMakeSymlink,  // `other` is the target
  kCreate,
  kWrite,     // the file's content will be `content`; reaches the core until it is settled
  kSettle,    // closed or synced: all that was written has reached the core
  kTruncate,  // to `content`
  kRename,    // to `other`, over what is there
  kLink,      // `other` is the new name
  kUnlink,
  kSetXattr,  // `other` is the attribute's name, `content` its value
};

struct Operation {
  OperationKind kind;
  std::string name;  // relative to the writer's directory
  std::string other;
  Content content;
  Stamp begin = 0;
  Stamp end = kNever;  // never, if it did not return or failed
  // A write that a later fsync of the file made durable.
  bool settled = false;
  // How long the device's log was when it began (RoundState::position).
  uint64_t position = 0;
};

// An fsync that returned: of what, and how long the device's log was then.
struct SyncReturn {
  uint64_t position = 0;
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

// "rename a b".
std::string DescribeOperation(const Operation& operation);

// One writer's operations since the last time that everything was compared. Not thread-safe: the
// writer's until its thread was joined.
struct History {
  std::vector<Operation> operations;
  // What fsyncs that returned have promised: so many of these operations ...
  size_t durable_operations = 0;
  // ... and every writer's that ended before this.
  Stamp durable_before = 0;
  std::vector<SyncReturn> syncs;

  // An fsync returned of something whose last change was operation `last_change`. Operations before
  // that one, whoever's they are, are in the same commit or an earlier one.
  void MadeDurable(size_t last_change) {
    durable_operations = std::max(durable_operations, last_change + 1);
    durable_before = std::max(durable_before, operations[last_change].begin);
  }
};

}  // namespace siltfs::killtest
