#include "tests/crash/operation_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tests/crash/operation_data.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

}  // namespace

OperationGenerator::OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix)
    : random_(seed), largest_write_(largest_write), mix_(mix) {}

std::string OperationGenerator::Name() { return fmt::format("n{}", random_.Below(7)); }

std::string OperationGenerator::Directory() {
  const uint64_t which = random_.Below(4);
  return which < 2 ? "" : fmt::format("d{}", which);
}

Operation OperationGenerator::Data(Kind kind) {
  Operation operation;
  operation.kind = kind;
  operation.slot = static_cast<uint8_t>(random_.Below(kSlots));
  const uint32_t shift = static_cast<uint32_t>(random_.Below(5));
  operation.size = 1 + static_cast<uint32_t>(random_.Below((largest_write_ >> shift) + 1));
  operation.offset = random_.Below(uint64_t{largest_write_} * 3);
  if (random_.OneIn(3)) operation.offset = operation.offset / 4096 * 4096;
  operation.data_seed = random_.Next();
  return operation;
}

// Plans the steps of a typical way to write a file, or a single step.
void OperationGenerator::Plan() {
  Operation target;
  target.directory = Directory();
  target.name = Name();
  target.slot = static_cast<uint8_t>(random_.Below(kSlots));
  auto then = [&](Kind kind) {
    Operation operation = Data(kind);
    operation.slot = target.slot;
    operation.directory = target.directory;
    operation.name = target.name;
    planned_.push_back(operation);
  };
  const uint64_t way = random_.Below(10);
  if (way < 3) {  // replace by rename, often without fsync
    const std::string goal = target.name;
    target.name = goal + ".tmp";
    then(Kind::kCreate);
    for (uint64_t n = 1 + random_.Below(3); n > 0; --n) then(Kind::kAppend);
    if (random_.OneIn(3)) then(Kind::kFsync);
    then(Kind::kClose);
    then(Kind::kRename);
    planned_.back().other_directory = target.directory;
    planned_.back().other_name = goal;
  } else if (way < 6) {  // a whole file
    then(random_.OneIn(3) ? Kind::kOverwrite : Kind::kCreate);
    for (uint64_t n = random_.Below(4); n > 0; --n) then(Kind::kAppend);
    if (random_.OneIn(4)) then(Kind::kFsync);
    if (!random_.OneIn(3)) then(Kind::kClose);
  } else if (way < 8) {  // a database
    then(Kind::kOpen);
    for (uint64_t n = 1 + random_.Below(4); n > 0; --n) {
      then(Kind::kWrite);
      if (random_.OneIn(2)) then(Kind::kFsync);
    }
  } else if (way == 8) {  // a temporary file that is unlinked while it is open
    then(Kind::kCreate);
    then(Kind::kUnlink);
    then(Kind::kAppend);
    then(Kind::kWrite);
  } else {
    for (int i = 0; i < 3; ++i) planned_.push_back(Simple());
  }
  std::reverse(planned_.begin(), planned_.end());
}

Operation OperationGenerator::Simple() {
  static constexpr Kind kKinds[] = {
      Kind::kTruncate,  Kind::kPunchHole,     Kind::kAllocate, Kind::kCopyRange,
      Kind::kCopyRange, Kind::kClose,         Kind::kRename,   Kind::kRenameNew,
      Kind::kExchange,  Kind::kLink,          Kind::kUnlink,   Kind::kUnlink,
      Kind::kSymlink,   Kind::kMakeDirectory, Kind::kSetMode,  Kind::kRemoveDirectory,
      Kind::kSetXattr,  Kind::kRemoveXattr,   Kind::kWrite,    Kind::kMakeDirectory,
      Kind::kMakeNode,  Kind::kSetOwner,      Kind::kSetTimes, Kind::kSetAcl};
  Operation operation = Data(kKinds[random_.Below(std::size(kKinds))]);
  operation.directory = Directory();
  operation.name = Name();
  operation.other_directory = Directory();
  operation.other_name = Name();
  if (operation.kind == Kind::kMakeDirectory || operation.kind == Kind::kRemoveDirectory ||
      (operation.kind == Kind::kSetAcl && IsDefaultAcl(operation.data_seed))) {
    operation.directory.clear();
    operation.name = fmt::format("d{}", 2 + random_.Below(2));
  }
  return operation;
}

Operation OperationGenerator::Part(Kind kind) {
  Operation operation = Data(kind);
  operation.data_seed = PartSeed(random_.Below(kContents), random_.Below(kParts));
  return operation;
}

Operation OperationGenerator::NextOfCopies() {
  if (planned_.empty()) {
    Operation target;
    target.name = Name();
    target.slot = static_cast<uint8_t>(random_.Below(kSlots));
    auto then = [&](Kind kind) {
      Operation operation = Part(kind);
      operation.slot = target.slot;
      operation.name = target.name;
      planned_.push_back(operation);
    };
    const uint64_t way = random_.Below(12);
    if (way < 5) {
      then(random_.OneIn(2) ? Kind::kOverwrite : Kind::kCreate);
      for (uint64_t n = 1 + random_.Below(2); n > 0; --n) then(Kind::kAppend);
      if (random_.OneIn(3)) then(Kind::kFsync);
      then(Kind::kClose);
    } else if (way < 8) {
      then(Kind::kUnlink);
    } else if (way < 9) {
      then(Kind::kOpen);
      then(random_.OneIn(2) ? Kind::kTruncate : Kind::kPunchHole);
      then(Kind::kClose);
    } else {
      Operation operation;
      operation.kind = way < 11 ? Kind::kCollect : Kind::kSyncAll;
      planned_.push_back(operation);
    }
    std::reverse(planned_.begin(), planned_.end());
  }
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

Operation OperationGenerator::Next() {
  Operation next = mix_ == Mix::kCopies      ? NextOfCopies()
                   : mix_ == Mix::kEntries   ? NextOfEntries()
                   : mix_ == Mix::kVersions  ? NextOfVersions()
                   : mix_ >= Mix::kSnapshots ? NextOfSnapshots()
                                             : NextUntimed();
  next.time = time_ += 1 + static_cast<int64_t>(random_.Below(1'000'000));
  return next;
}

Operation OperationGenerator::NextUntimed() {
  if (planned_.empty() && random_.OneIn(8)) {
    Operation sync;
    constexpr std::array kKinds = {Kind::kSyncAll, Kind::kSyncAll, Kind::kRecompress,
                                   Kind::kCollect};
    sync.kind = kKinds[random_.Below(kKinds.size())];
    return sync;
  }
  if (planned_.empty() && random_.OneIn(2)) return Simple();
  if (planned_.empty()) Plan();
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

}  // namespace siltfs::testing
