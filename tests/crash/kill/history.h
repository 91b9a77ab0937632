// A writer's operations, in order, with times from a clock shared by all writers: an operation that
// ended before another began has reached the file system first.
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
  kWrite,      // the file's content will be `content`; reaches the core by kWriteBack at the latest
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
  Stamp end = kNever;  // kNever if it did not return or failed
  // A write that a later fsync of the file made durable.
  bool written_back = false;
  // Length of the device's log when it began (RoundState::position).
  uint64_t position = 0;
};

// An fsync that returned: its object, and the length of the device's log then.
struct SyncReturn {
  uint64_t position = 0;
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

// "rename a b".
std::string DescribeOperation(const Operation& operation);

// One writer's operations since the last comparison of everything. Not thread-safe: it belongs to
// the writer until its thread is joined.
struct History {
  std::vector<Operation> operations;
  // The promises of fsyncs that returned: this many of these operations ...
  size_t durable_operations = 0;
  // ... and all writers' operations that ended before this.
  Stamp durable_before = 0;
  std::vector<SyncReturn> syncs;

  // Call it when an fsync of an object returned. `last_change` is the object's last operation.
  // Earlier operations of all writers are in the same commit or an earlier one.
  void MadeDurable(size_t last_change) {
    durable_operations = std::max(durable_operations, last_change + 1);
    durable_before = std::max(durable_before, operations[last_change].begin);
  }
};

}  // namespace siltfs::killtest
