// The part of OperationGenerator that plans steps on versions of a few texts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tests/crash/operation_data.h"
#include "tests/crash/operation_generator.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

Operation OfStore(Kind kind) {
  Operation operation;
  operation.kind = kind;
  return operation;
}

Operation Removal(std::string name) {
  Operation operation = OfStore(Kind::kUnlink);
  operation.name = std::move(name);
  return operation;
}

}  // namespace

// Writes a file with one or two beginnings of the version.
void OperationGenerator::PlanVersion(const std::string& name, uint64_t text, uint64_t version) {
  const auto slot = static_cast<uint8_t>(random_.Below(kSlots));
  auto then = [&](Kind kind) {
    Operation operation = Data(kind);
    operation.slot = slot;
    operation.name = name;
    operation.size = largest_write_ / 2 + operation.size / 2;
    operation.data_seed = VersionSeed(text, version);
    planned_.push_back(operation);
  };
  then(Kind::kCreate);
  then(Kind::kOverwrite);
  then(Kind::kAppend);
  if (random_.OneIn(4)) then(Kind::kAppend);
  if (random_.OneIn(4)) then(Kind::kFsync);
  then(Kind::kClose);
}

// Writes a version and a later one, with recompression after each. Then removes the first one.
void OperationGenerator::PlanGeneration() {
  const uint64_t text = random_.Below(kTexts);
  const uint64_t version = random_.Below(kTextVersions);
  const std::string first = fmt::format("n{}", text);
  const std::string second = fmt::format("n{}", kTexts + text);
  auto settle = [&] {
    planned_.push_back(OfStore(Kind::kSyncAll));
    planned_.push_back(OfStore(Kind::kRecompress));
  };
  PlanVersion(first, text, version);
  settle();
  PlanVersion(second, text, (version + 1) % kTextVersions);
  settle();
  planned_.push_back(Removal(first));
  if (random_.OneIn(2)) planned_.push_back(OfStore(Kind::kCollect));
}

void OperationGenerator::PlanVersions() {
  const uint64_t way = random_.Below(16);
  // With more names than other sequences have, more files live long enough to become deltas.
  const std::string name = fmt::format("n{}", random_.Below(12));
  if (way < 3) {
    PlanGeneration();
  } else if (way < 9) {
    PlanVersion(name, random_.Below(kTexts), random_.Below(kTextVersions));
  } else if (way < 11) {
    planned_.push_back(Removal(name));
  } else if (way < 12) {  // a change of a part of a file
    Operation open = Data(Kind::kOpen);
    open.name = name;
    Operation change = Data(random_.OneIn(3) ? Kind::kTruncate : Kind::kWrite);
    change.slot = open.slot;
    if (random_.OneIn(2))
      change.data_seed = VersionSeed(random_.Below(kTexts), random_.Below(kTextVersions));
    planned_.push_back(open);
    planned_.push_back(change);
  } else {
    static constexpr Kind kKinds[] = {Kind::kCollect, Kind::kRecompress, Kind::kRecompress,
                                      Kind::kSyncAll};
    planned_.push_back(OfStore(kKinds[way - 12]));
  }
}

Operation OperationGenerator::NextOfVersions() {
  if (planned_.empty()) {
    PlanVersions();
    std::reverse(planned_.begin(), planned_.end());
  }
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

}  // namespace siltfs::testing
