// Generates the random steps of a sequence from a seed.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/base/random.h"
#include "tests/crash/operation.h"

namespace siltfs::testing {

// Generates steps that are likely to succeed and to affect each other: there are few names, files
// stay open, and renames replace files.
class OperationGenerator {
 public:
  // The mix of steps.
  enum class Mix : uint8_t {
    kAll,
    // Writes, removes and garbage-collects parts of a few contents, so that chunks get several
    // copies and lose some of them again.
    kCopies,
    // Imports of trees, mixed with other steps: entries are put, offered, placed and removed.
    kEntries,
    // Versions of a few texts are written, recompressed, removed and garbage-collected, so that
    // chunks become deltas, and lose the files that refer to their bases.
    kVersions,
    // Snapshots are made, renamed, removed, received and cloned among all other steps.
    kSnapshots,
    // As kSnapshots, and the files are rolled back to snapshots. For sequences of one thread.
    kSnapshotsAlone,
    // As kSnapshotsAlone, and the thread's directory gets, changes and loses a quota.
    kQuotas,
  };
  OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix = Mix::kAll);
  Operation Next();

 private:
  Operation NextUntimed();
  Operation NextOfCopies();
  Operation NextOfEntries();
  Operation NextOfVersions();
  // operation_generator_entries.cc
  void PlanEntries();
  void PlanTree();
  void PlanTemporary();
  void PlanPuts();
  void PlanRemoval();
  void PlanRemovalOf(const std::string& directory);
  void PlanClone();
  Operation Entry(Operation::Kind kind);
  // operation_generator_versions.cc
  void PlanVersions();
  void PlanVersion(const std::string& name, uint64_t text, uint64_t version);
  void PlanGeneration();
  // operation_generator_snapshots.cc
  Operation NextOfSnapshots();
  void PlanSnapshots();
  void PlanReceipts();
  void PlanOwnReceipts();
  void PlanLostBase();
  void PlanSnapshotClone();
  void PlanRollBack();
  void PlanSnapshot(const std::string& name);
  void PlanReceipt(const std::string& name, const std::string& base, const std::string& new_name);
  void PlanChanges(uint64_t most);
  // Returns a step whose data is a part of one of a few contents.
  Operation Part(Operation::Kind kind);
  void Plan();
  Operation Simple();
  Operation Data(Operation::Kind kind);
  std::string Name();
  std::string Directory();

  Random random_;
  const uint32_t largest_write_;
  const Mix mix_;
  std::vector<Operation> planned_;  // in reverse order
  int64_t time_ = kFirstTime;
};

}  // namespace siltfs::testing
