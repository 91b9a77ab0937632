// The part of OperationGenerator that plans imports.
#include <fmt/format.h>

#include <algorithm>

#include "tests/crash/operation_generator.h"
#include "tests/crash/source_image.h"

namespace siltfs::testing {
namespace {

using Kind = Operation::Kind;

}  // namespace

// Returns a step that imports a random entry. The name mostly decides the source, as in two imports
// of the same tree.
Operation OperationGenerator::Entry(Kind kind) {
  Operation operation;
  operation.kind = kind;
  operation.directory = Directory();
  const uint64_t source = random_.Below(kSources);
  operation.name = random_.OneIn(8) ? Name() : fmt::format("n{}", source);
  // Most sources keep their state, so that offers find it.
  const uint64_t state = random_.OneIn(2) ? 0 : random_.Below(kSourceStates);
  operation.data_seed = SourceSeed(source, state, random_);
  return operation;
}

// Puts several entries by one call, mostly into one directory.
void OperationGenerator::PlanPuts() {
  const std::string directory = Directory();
  for (uint64_t n = 1 + random_.Below(4); n > 0; --n) {
    planned_.push_back(Entry(Kind::kPut));
    if (!random_.OneIn(4)) planned_.back().directory = directory;
    if (n > 1) planned_.back().slot = kWithNext;
  }
}

// Imports a tree of a few files, with the last import of this tree as reference.
void OperationGenerator::PlanTree() {
  const bool second = random_.OneIn(2);
  const std::string directory = second ? "d3" : "d2";
  Operation make;
  make.kind = Kind::kMakeDirectory;
  make.name = directory;
  planned_.push_back(make);
  for (uint64_t n = 2 + random_.Below(4); n > 0; --n) {
    Operation offer = Entry(Kind::kOffer);
    offer.directory = directory;
    offer.other_directory = second ? "d2" : "d3";
    if (!random_.OneIn(3)) planned_.push_back(offer);
    if (random_.OneIn(3)) continue;
    Operation put = offer;  // as if it had been needed
    put.kind = random_.OneIn(3) ? Kind::kStream : Kind::kPut;
    put.other_directory.clear();
    planned_.push_back(put);
  }
  Operation finish = Entry(Kind::kSetDirectory);
  finish.directory.clear();
  finish.name = directory;
  planned_.push_back(finish);
  if (random_.OneIn(4)) planned_.push_back(finish);  // changes nothing
}

// Writes a file without a name step by step, and gives it a name.
void OperationGenerator::PlanTemporary() {
  const uint8_t slot = static_cast<uint8_t>(random_.Below(kSlots));
  const auto then = [&](Kind kind) {
    Operation operation = Data(kind);
    operation.slot = slot;
    planned_.push_back(operation);
  };
  const auto make = [&](uint8_t into) {
    Operation operation = Entry(Kind::kMakeTemporary);
    operation.name.clear();
    operation.slot = into;
    planned_.push_back(operation);
  };
  make(slot);
  for (uint64_t n = random_.Below(4); n > 0; --n) {
    static constexpr Kind kKinds[] = {Kind::kAppend,   Kind::kAppend,    Kind::kWrite,
                                      Kind::kTruncate, Kind::kCopyRange, Kind::kFsync};
    then(kKinds[random_.Below(std::size(kKinds))]);
  }
  if (random_.OneIn(2)) {
    // A copy folds the file. So in sequences that commit before each step, the change that gives
    // the file its name is the first one after that commit.
    const uint8_t copy = static_cast<uint8_t>((slot + kSlots - 1) % kSlots);
    make(copy);
    then(Kind::kCopyRange);
    planned_.back().slot = copy;
    planned_.back().data_seed = 0;  // the whole file
  }
  Operation place = Entry(Kind::kPlace);
  place.slot = slot;
  planned_.push_back(place);
  if (random_.OneIn(3)) then(random_.OneIn(2) ? Kind::kFsync : Kind::kWrite);
  if (!random_.OneIn(3)) then(Kind::kClose);
}

// Removes a part of a tree, as import --delete does.
void OperationGenerator::PlanRemoval() { PlanRemovalOf(fmt::format("d{}", 2 + random_.Below(2))); }

void OperationGenerator::PlanRemovalOf(const std::string& directory) {
  Operation remove;
  remove.kind = Kind::kUnlink;
  remove.directory = directory;
  const uint64_t first = random_.OneIn(2) ? 0 : random_.Below(kSources);
  for (uint64_t source = first; source < kSources; ++source) {
    remove.name = fmt::format("n{}", source);
    planned_.push_back(remove);
  }
  remove.kind = Kind::kRemoveDirectory;
  remove.name = std::move(remove.directory);
  remove.directory.clear();
  planned_.push_back(remove);
}

// Clones a directory, mostly after another one was removed to make room, or a file. Clones do not
// go into other directories, so that trees do not grow without limit.
void OperationGenerator::PlanClone() {
  Operation clone;
  clone.kind = Kind::kClone;
  if (random_.OneIn(3)) {
    clone.directory = Directory();
    clone.name = Name();
    clone.other_directory = Directory();
    clone.other_name = Name();
  } else {
    if (!random_.OneIn(4)) PlanRemoval();
    const uint64_t target = planned_.empty() ? 2 + random_.Below(2)
                                             : static_cast<uint64_t>(planned_.back().name[1] - '0');
    clone.name = fmt::format("d{}", 5 - target);
    clone.other_name = fmt::format("d{}", target);
    if (random_.OneIn(8)) clone.other_directory = clone.name;  // refused: lies in itself
  }
  planned_.push_back(clone);
}

void OperationGenerator::PlanEntries() {
  const uint64_t way = random_.Below(23);
  if (way < 4) {
    PlanTree();
  } else if (way < 8) {
    PlanPuts();
  } else if (way < 10) {
    planned_.push_back(Entry(Kind::kStream));
  } else if (way < 13) {
    PlanTemporary();
  } else if (way < 15) {
    planned_.push_back(Entry(Kind::kAddName));
    planned_.back().other_directory = Directory();
    planned_.back().other_name = Name();
  } else if (way < 17) {
    Operation offer = Entry(Kind::kOffer);
    offer.other_directory = Directory();
    planned_.push_back(offer);
  } else if (way == 17) {
    Operation set = Entry(Kind::kSetDirectory);
    set.name = std::move(set.directory);
    set.directory.clear();
    planned_.push_back(set);
  } else if (way == 18) {
    PlanRemoval();
  } else if (way > 19) {
    PlanClone();
  } else {  // refused if the name belongs to a directory
    Operation put = Entry(random_.OneIn(2) ? Kind::kPut : Kind::kStream);
    put.directory.clear();
    put.name = "d2";
    planned_.push_back(put);
  }
  std::reverse(planned_.begin(), planned_.end());
}

Operation OperationGenerator::NextOfEntries() {
  if (planned_.empty() && random_.OneIn(16)) {
    Operation collect;
    collect.kind = Kind::kCollect;
    return collect;
  }
  if (planned_.empty() && random_.OneIn(4)) return NextUntimed();
  if (planned_.empty()) PlanEntries();
  Operation next = std::move(planned_.back());
  planned_.pop_back();
  return next;
}

}  // namespace siltfs::testing
