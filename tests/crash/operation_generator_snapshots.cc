// The part of OperationGenerator that plans steps on snapshots. Snapshots of the thread's files are
// s0, s1 and s2, received ones r0 to r3 (from the sending store) and c0 to c2 (from this one). k0
// and k1 are kept by rollbacks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tests/crash/operation_data.h"
#include "tests/crash/operation_generator.h"
#include "tests/crash/sending_store.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

Operation OnSnapshot(Kind kind, std::string name, std::string other_name = {}) {
  Operation operation;
  operation.kind = kind;
  operation.name = std::move(name);
  operation.other_name = std::move(other_name);
  return operation;
}

std::string ReceivedName(unsigned nth) { return fmt::format("r{}", nth); }

}  // namespace

// Changes that are mostly not committed when the next step begins.
void OperationGenerator::PlanChanges(uint64_t most) {
  for (uint64_t n = random_.Below(most + 1); n > 0; --n) planned_.push_back(Simple());
}

void OperationGenerator::PlanSnapshot(const std::string& name) {
  if (!random_.OneIn(8)) planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, name));
  planned_.push_back(OnSnapshot(Kind::kSnapshot, name));
}

void OperationGenerator::PlanReceipt(const std::string& name, const std::string& base,
                                     const std::string& new_name) {
  if (!random_.OneIn(8)) planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, new_name));
  Operation receive = OnSnapshot(Kind::kReceive, name, new_name);
  receive.other_directory = base;
  receive.offset = random_.Below(uint64_t{1} << 20);
  receive.data_seed = random_.Next();
  planned_.push_back(std::move(receive));
}

// Receives snapshots of the sending store. Each but the first one has the one before as its base.
void OperationGenerator::PlanReceipts() {
  const auto first = static_cast<unsigned>(random_.Below(kSentSnapshots));
  const auto end = std::min(first + 1 + static_cast<unsigned>(random_.Below(3)), kSentSnapshots);
  for (unsigned nth = first; nth < end; ++nth) {
    PlanChanges(1);
    const std::string base = nth > first ? SentName(nth - 1) : "";
    PlanReceipt(SentName(nth), base, ReceivedName(nth));
  }
}

// Receives two snapshots of this store. Without changes between them, the second stream has no
// record.
void OperationGenerator::PlanOwnReceipts() {
  const uint64_t first = random_.Below(3);
  const uint64_t second = (first + 1) % 3;
  const bool changed = random_.OneIn(2);
  PlanSnapshot(fmt::format("s{}", first));
  PlanReceipt(fmt::format("s{}", first), "", fmt::format("c{}", first));
  if (changed) PlanChanges(3);
  PlanSnapshot(fmt::format("s{}", second));
  PlanChanges(2);
  PlanReceipt(fmt::format("s{}", second), fmt::format("s{}", first), fmt::format("c{}", second));
}

// Receives a snapshot only in part, and removes its base. Then receives both again. What has
// arrived first belongs to the removed base.
void OperationGenerator::PlanLostBase() {
  const auto nth = static_cast<unsigned>(random_.Below(kSentSnapshots - 1));
  PlanReceipt(SentName(nth), "", ReceivedName(nth));
  PlanReceipt(SentName(nth + 1), SentName(nth), ReceivedName(nth + 1));
  do {
    planned_.back().data_seed = random_.Next();
  } while (TransferOf(planned_.back().data_seed) != Transfer::kCutShort);
  planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, ReceivedName(nth)));
  if (random_.OneIn(2)) planned_.push_back(OnSnapshot(Kind::kCollect, ""));
  PlanReceipt(SentName(nth), "", ReceivedName(nth));
  PlanReceipt(SentName(nth + 1), SentName(nth), ReceivedName(nth + 1));
}

// Clones a file or a directory from a snapshot, mostly after the target was removed.
void OperationGenerator::PlanSnapshotClone() {
  const std::string snapshot = fmt::format("s{}", random_.Below(3));
  Operation clone;
  clone.kind = Kind::kCloneFromSnapshot;
  const bool known = !random_.OneIn(3);  // whether the snapshot has the source
  do {
    clone.data_seed = random_.Next();
  } while (known && SnapshotToClone(clone.data_seed) != snapshot);
  if (random_.OneIn(3)) {
    const uint64_t target = 2 + random_.Below(2);
    clone.name = fmt::format("d{}", random_.OneIn(2) ? target : 5 - target);
    clone.other_name = fmt::format("d{}", target);
    if (known) {
      Operation make;
      make.kind = Kind::kMakeDirectory;
      make.name = clone.name;
      planned_.push_back(make);
    }
  } else {
    clone.name = Name();
    clone.other_name = Name();
    if (known) {
      Operation create = Data(Kind::kCreate);
      create.name = clone.name;
      planned_.push_back(create);
      Operation append = Data(Kind::kAppend);
      append.slot = create.slot;
      planned_.push_back(append);
    }
  }
  if (known) PlanSnapshot(snapshot);
  PlanChanges(1);
  if (clone.other_name.starts_with("d")) {
    PlanRemovalOf(clone.other_name);
  } else {
    Operation remove;
    remove.kind = Kind::kUnlink;
    remove.name = clone.other_name;
    planned_.push_back(remove);
  }
  planned_.push_back(clone);
}

// Rolls the files back to a snapshot, after changes.
void OperationGenerator::PlanRollBack() {
  const std::string name = fmt::format("s{}", random_.Below(3));
  const std::string kept = fmt::format("k{}", random_.Below(2));
  if (random_.OneIn(2)) PlanSnapshot(name);
  PlanChanges(4);
  for (uint8_t slot = 0; slot < kSlots && !random_.OneIn(24); ++slot) {
    Operation close;
    close.kind = Kind::kClose;
    close.slot = slot;
    planned_.push_back(close);
  }
  if (!random_.OneIn(8)) planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, kept));
  planned_.push_back(OnSnapshot(Kind::kRollBack, random_.OneIn(10) ? "r0" : name, kept));
}

void OperationGenerator::PlanSnapshots() {
  const uint64_t way = random_.Below(mix_ >= Mix::kSnapshotsAlone ? 17 : 14);
  const std::string name = fmt::format("s{}", random_.Below(3));
  if (way < 2) {
    PlanSnapshot(name);
  } else if (way < 3) {
    planned_.push_back(OnSnapshot(Kind::kSnapshot, name));
  } else if (way < 5) {
    planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, name));
  } else if (way < 6) {
    const unsigned received = static_cast<unsigned>(random_.Below(kSentSnapshots));
    planned_.push_back(OnSnapshot(Kind::kDeleteSnapshot, ReceivedName(received)));
  } else if (way < 7) {
    planned_.push_back(
        OnSnapshot(Kind::kRenameSnapshot, name, fmt::format("s{}", random_.Below(3))));
  } else if (way < 8) {
    planned_.push_back(OnSnapshot(Kind::kCollect, ""));
  } else if (way < 10) {
    PlanReceipts();
  } else if (way < 11) {
    if (random_.OneIn(3)) {
      PlanLostBase();
    } else {
      PlanOwnReceipts();
    }
  } else if (way < 12) {  // mostly refused: the base is not the newest one
    const auto older = static_cast<unsigned>(random_.Below(kSentSnapshots));
    const auto newer = static_cast<unsigned>(random_.Below(kSentSnapshots));
    PlanReceipt(SentName(newer), SentName(older), ReceivedName(newer));
  } else if (way < 14) {
    PlanSnapshotClone();
  } else {
    PlanRollBack();
  }
  std::reverse(planned_.begin(), planned_.end());
}

Operation OperationGenerator::NextOfSnapshots() {
  if (mix_ == Mix::kQuotas && planned_.empty() && random_.OneIn(6)) {
    Operation quota = Data(random_.OneIn(3) ? Kind::kRemoveQuota : Kind::kSetQuota);
    quota.slot = 0;
    return quota;
  }
  if (planned_.empty() && random_.OneIn(3)) PlanSnapshots();
  if (planned_.empty() && random_.OneIn(3)) return NextOfEntries();
  return NextUntimed();
}

}  // namespace siltfs::testing
