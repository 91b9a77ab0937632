// A writer's operations, in order. Their times are from a clock shared by all writers, so an
// operation that ended before another one began has reached the file system first.
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
  kWrite,      // makes the content `content`; it reaches the core by kWriteBack at the latest
  kWriteBack,  // the file was closed or synced: all its writes have reached the core
  kTruncate,   // to `content`
  kRename,     // to `other`, replacing it
  kLink,       // `other` is the new name
  kUnlink,
  kSetXattr,  // `other` is the attribute's name, `content` its value
};

struct Operation {
  OperationKind kind;
  std::string name;  // relative to the writer's directory
  std::string other;
  Content content;
  Stamp begin = 0;
  Stamp end = kNever;  // kNever if the operation failed or did not return
  // If true, this is a write that a later fsync of the file made durable.
  bool written_back = false;
  // Length of the device's log when the operation began (RoundState::position).
  uint64_t position = 0;
};

// An fsync that returned: the length of the device's log at that time, and the last operations on
// the synced object.
struct SyncReturn {
  uint64_t position = 0;
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

// Returns text such as "rename a b".
std::string DescribeOperation(const Operation& operation);

// One writer's operations since the last comparison of the whole tree. Not thread-safe: it belongs
// to the writer until the writer's thread is joined.
struct History {
  std::vector<Operation> operations;
  // Promised by the fsyncs that have returned: this many of the operations, from the first one on,
  // are durable.
  size_t durable_operations = 0;
  // Also promised: all operations of all writers that ended before this time are durable.
  Stamp durable_before = 0;
  std::vector<SyncReturn> syncs;

  // Call it when an fsync of an object has returned. `last_change` is the last operation that
  // changed the object. All operations of all writers that ended before this operation began are in
  // the same commit or an earlier one.
  void MadeDurable(size_t last_change) {
    durable_operations = std::max(durable_operations, last_change + 1);
    durable_before = std::max(durable_before, operations[last_change].begin);
  }
};

}  // namespace siltfs::killtest
