#include <iterator>

#include "index/engines.h"
#include "tests/crash/sequence.h"

namespace siltfs::testing {
namespace {

// Half of the stores have the default engine, the first one; all others have the same share.
IndexEngine PlanEngine(uint64_t choice) {
  const auto engines = IndexEngines();
  return engines[choice < engines.size() ? choice : 0]->number;
}

std::optional<SimFault> PlanFault(Random& random) {
  if (!random.OneIn(3)) return std::nullopt;
  SimFault fault;
  fault.nth = 1 + random.Below(400);
  switch (random.Below(7)) {
    case 0:
      fault.calls = SimCall::kSync;  // an fsync that fails once
      fault.nth = 1 + random.Below(40);
      break;
    case 4:
    case 5:
    case 6: {  // a failure for one kind of file, which may be rare
      static constexpr const char* kParts[] = {"/segments/", "/meta/", "/index/", "ledger",
                                               "/segments/"};
      fault.calls = SimCall::kSync | SimCall::kSyncDirectory;
      fault.path_part = kParts[random.Below(std::size(kParts))];
      fault.nth = 1 + random.Below(6);
      break;
    }
    case 1:
      fault.calls = SimCall::kWrite;  // a short write
      fault.bytes_written = random.Below(4096);
      break;
    case 2:
      fault.calls = SimCall::kMutating;
      break;
    default:
      fault.calls = SimCall::kMutating;
      fault.code = StatusCode::kNoSpace;
      fault.bytes_written = random.Below(4096);
      fault.sticky = random.OneIn(2);  // the disk stays full until the steps are done
  }
  return fault;
}

// Plans a sequence in which chunks get several copies. The steps, and not the place of the cut,
// decide whether an error shows. So there are many such sequences, each with few cuts.
void PlanCopies(Random& random, SequencePlan& plan) {
  plan.mix = OperationGenerator::Mix::kCopies;
  plan.threads = 2 + static_cast<unsigned>(random.Below(2));
  plan.phases = plan.fault ? 1 : 1 + static_cast<unsigned>(random.Below(3));
  plan.steps = 40 + static_cast<unsigned>(random.Below(60));
  plan.most_places = 4;
  plan.largest_write = 1u << (13 + random.Below(3));
  plan.segment_bytes = 8192u << random.Below(3);
  plan.group_bytes = 4u << 20;
  plan.commit_first = false;
}

// Plans a sequence of imports. Most sequences have few cuts, so that a campaign has many of them.
void PlanEntries(Random& random, SequencePlan& plan) {
  plan.mix = OperationGenerator::Mix::kEntries;
  plan.steps += 8;
  plan.largest_write = 1u << (12 + random.Below(4));
  if (!random.OneIn(16)) plan.most_places = 8;
  if (random.OneIn(3)) {  // shows whether an entry is put by a single change
    plan.group_bytes = 1;
    plan.commit_first = true;
  }
}

// Plans a sequence with snapshots.
void PlanSnapshots(Random& random, SequencePlan& plan) {
  if (random.OneIn(3)) plan.threads = 1;
  plan.mix = plan.threads == 1 ? OperationGenerator::Mix::kSnapshotsAlone
                               : OperationGenerator::Mix::kSnapshots;
  plan.steps += 16;
  plan.largest_write = 1u << (12 + random.Below(4));
  if (!random.OneIn(16)) plan.most_places = 8;
  // After a failed device, a step that makes a snapshot may or may not have made it.
  plan.fault.reset();
}

// Plans a sequence with a quota. Rollbacks, which change it, need a single thread.
void PlanQuotas(Random& random, SequencePlan& plan) {
  PlanSnapshots(random, plan);
  plan.threads = 1;
  plan.mix = OperationGenerator::Mix::kQuotas;
}

// Plans a sequence in a store with deltas.
void PlanVersions(uint64_t seed, SequencePlan& plan) {
  Random random(seed + 4);
  plan.mix = OperationGenerator::Mix::kVersions;
  plan.store.deltas = true;
  plan.store.compression_level = MakeStoreOptions().compression_level;
  plan.steps = 50 + static_cast<unsigned>(random.Below(100)) / plan.threads / plan.phases;
  plan.most_places = 8;
  plan.largest_write = 1u << (14 + random.Below(2));
  plan.segment_bytes = 8192u << random.Below(3);
  plan.recompress_beside = random.OneIn(2);
  if (!random.OneIn(4)) {
    plan.group_bytes = 4u << 20;
    plan.commit_first = false;
  }
}

// Whether a sequence of kPrograms is in a store with deltas. All others are as they were before
// there were deltas.
bool IsOfVersions(uint64_t seed) { return Random(seed + 5).OneIn(4); }

}  // namespace

SequencePlan PlanSequence(uint64_t seed, Workload workload) {
  Random random(seed);
  SequencePlan plan;
  plan.seed = seed;
  plan.threads = 1 + static_cast<unsigned>(random.Below(3));
  plan.phases = random.OneIn(2) ? 1 : 1 + static_cast<unsigned>(random.Below(4));
  plan.steps = 8 + (16 + static_cast<unsigned>(random.Below(64))) / plan.threads / plan.phases;
  if (random.OneIn(8)) plan.most_places = SIZE_MAX;
  if (random.OneIn(24)) {  // enough to flush the metadata during the steps
    plan.steps = 300;
    plan.most_places = 150;
  }
  plan.largest_write = 1u << (12 + random.Below(6));
  if (random.OneIn(2)) plan.commit_interval = std::chrono::milliseconds(random.Below(4));
  if (random.OneIn(3)) {
    plan.group_bytes = 1;
    plan.commit_first = random.OneIn(2);
  }
  plan.segment_bytes = 4096u << random.Below(random.OneIn(2) ? 2 : 6);
  plan.store.path = kStorePath;
  plan.store.chunk_min = 256;
  plan.store.chunk_avg = 1024;
  plan.store.chunk_max = 8192;
  plan.store.index_engine = PlanEngine(random.Below(8));
  plan.partition_bits = static_cast<unsigned>(random.Below(2));
  plan.bucket_bits = 1 + static_cast<unsigned>(random.Below(4));
  if (random.OneIn(4)) plan.store.compression_level = 0;
  plan.fault = PlanFault(random);
  if (plan.fault) plan.phases = 1;
  if (random.OneIn(3)) plan.store.index_memory = 0;  // lookups without filters
  if (workload == Workload::kImports) {
    PlanEntries(random, plan);
  } else if (workload == Workload::kSnapshots) {
    PlanSnapshots(random, plan);
  } else if (workload == Workload::kQuotas) {
    PlanQuotas(random, plan);
  } else if (workload == Workload::kVersions || IsOfVersions(seed)) {
    PlanVersions(seed, plan);
  } else if (!random.OneIn(4)) {
    PlanCopies(random, plan);
  }
  return plan;
}

}  // namespace siltfs::testing
