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
    // Snapshots are made, renamed and removed among all other steps.
    kSnapshots,
  };
  OperationGenerator(uint64_t seed, uint32_t largest_write, Mix mix = Mix::kAll);
  Operation Next();

 private:
  Operation NextUntimed();
  Operation NextOfCopies();
  Operation NextOfEntries();
  Operation NextOfVersions();
  Operation NextOfSnapshots();
  // operation_generator_entries.cc
  void PlanEntries();
  void PlanTree();
  void PlanTemporary();
  void PlanPuts();
  void PlanRemoval();
  void PlanClone();
  Operation Entry(Operation::Kind kind);
  // operation_generator_versions.cc
  void PlanVersions();
  void PlanVersion(const std::string& name, uint64_t text, uint64_t version);
  void PlanGeneration();
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
