#include "tests/crash/sequence.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "fs/interface/stats.h"
#include "fs/interface/store_maintenance.h"
#include "fs/open/store_layout.h"
#include "index/engines.h"
#include "index/open_index.h"
#include "index/silt/silt_index.h"
#include "store/superblock/superblock.h"

namespace siltfs::testing {
namespace {

constexpr std::chrono::hours kNever{1};

// Returns whether the device failed; false if the store refused the step for another reason.
bool IsDeviceFailure(StatusCode code) {
  switch (code) {
    case StatusCode::kIoError:
    case StatusCode::kNoSpace:
    case StatusCode::kReadOnly:
    case StatusCode::kAborted:
    case StatusCode::kCorruption:
      return true;
    default:
      return false;
  }
}

// Makes an index so small that it is reorganized all the time. It keeps its parameters.
Status MakeSmallIndex(Env& env, const SequencePlan& plan) {
  if (plan.store.index_engine != IndexEngine::kSilt) {
    IndexOptions options;
    options.engine = plan.store.index_engine;
    options.directory = IndexPath(kStorePath);
    for (const EngineParameterSpec& spec : FindIndexEngine(options.engine)->parameters) {
      options.parameters.push_back({std::string(spec.name), spec.least});
    }
    SILTFS_ASSIGN_OR_RETURN(auto index, OpenIndex(env, options));
    return index->Close();
  }
  SiltIndexOptions options;
  options.directory = IndexPath(kStorePath);
  options.partition_bits = plan.partition_bits;
  options.bucket_bits = plan.bucket_bits;
  SILTFS_ASSIGN_OR_RETURN(auto index, OpenSiltIndex(env, options));
  return index->Close();
}

// After a failure of the device the store must refuse to write (docs/crash-model.md, I3).
Status CheckFailures(FileSystem& fs, const std::vector<Status>& outcomes) {
  for (const Status& outcome : outcomes) {
    if (outcome.ok() || outcome.Is(StatusCode::kCorruption)) continue;
    auto made = fs.MakeDirectory(kRootInode, "after-the-failure", 0755, {});
    if (made.status().Is(StatusCode::kReadOnly)) continue;
    return Status(StatusCode::kCorruption,
                  "the store goes on writing after a failure: " + outcome.ToString());
  }
  return Status::Ok();
}

Status RunPhase(SimEnv& env, const SequencePlan& plan, unsigned phase, Random& random) {
  FindingLog findings;
  SILTFS_ASSIGN_OR_RETURN(auto fs,
                          OpenStore(env, plan.commit_interval, findings, false, plan.group_bytes));
  if (phase == 0 && plan.fault) env.FailCall(*plan.fault);
  std::vector<std::thread> threads;
  std::vector<Stepper> steppers;
  std::vector<Status> outcomes(plan.threads);
  for (unsigned i = 0; i < plan.threads; ++i) steppers.emplace_back(*fs, i);
  for (unsigned i = 0; i < plan.threads; ++i) {
    const uint64_t seed = random.Next();
    threads.emplace_back([&, i, seed] {
      OperationGenerator generator(seed, plan.largest_write, plan.mix);
      if (phase > 0) Marks::Begin(env, i, Operation{});
      if (phase > 0) Marks::End(env, i, true, "reopened");
      outcomes[i] = TakeSteps(env, steppers[i], i, generator, plan.steps,
                              plan.commit_first ? fs.get() : nullptr);
    });
  }
  std::atomic<bool> done{false};
  std::thread beside;
  if (plan.recompress_beside) {
    beside = std::thread([&fs, &done] {
      while (!done) {
        fs->maintenance().Recompress().status().IgnoreError("the device may have failed");
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  if (beside.joinable()) beside.join();
  env.ClearFaults();
  SILTFS_RETURN_IF_ERROR(CheckFailures(*fs, outcomes));
  // By now there is much data to recompress. Recompression changes nothing that a step can see.
  if (random.OneIn(2))
    fs->maintenance().Recompress().status().IgnoreError("the device may have failed");
  if (!random.OneIn(2)) {  // the process is killed; its writes are in the page cache
    if (phase + 1 == plan.phases) return Status::Ok();
    const Status synced = fs->SyncAll();
    if (synced.ok()) Marks::AllDurable(env);
    return synced;
  }
  for (Stepper& stepper : steppers) stepper.ReleaseAll();
  const Status closed = CloseStore(*fs);
  if (closed.ok()) Marks::AllDurable(env);
  return plan.fault ? Status::Ok() : closed;  // the store may have turned read-only
}

// Returns the steps of the next call. They have the same time.
std::vector<Operation> NextSteps(OperationGenerator& generator) {
  std::vector<Operation> steps{generator.Next()};
  while (steps.back().kind == Operation::Kind::kPut && steps.back().slot == kWithNext) {
    steps.push_back(generator.Next());
    steps.back().time = steps[0].time;
  }
  return steps;
}

}  // namespace

void FindingLog::Add(const std::string& finding) {
  MutexLock lock(mutex_);
  findings_ += finding + "\n";
}

std::string FindingLog::Take() {
  MutexLock lock(mutex_);
  return std::exchange(findings_, {});
}

Status MakeSmallStore(SimEnv& env, const SequencePlan& plan) {
  SILTFS_RETURN_IF_ERROR(MakeStore(env, plan.store));
  Marks::Made(env);
  SILTFS_ASSIGN_OR_RETURN(SuperblockState state,
                          ReadSuperblock(env, kStorePath, StoreAccess::kReadWrite));
  state.superblock.segment_bytes = plan.segment_bytes;
  state.superblock.block_plain_bytes = kMinBlockPlainBytes;
  SILTFS_RETURN_IF_ERROR(WriteSuperblock(env, kStorePath, state.superblock));
  SILTFS_RETURN_IF_ERROR(MakeSmallIndex(env, plan));
  FindingLog findings;
  SILTFS_ASSIGN_OR_RETURN(auto fs, OpenStore(env, kNever, findings));
  for (unsigned i = 0; i < plan.threads; ++i) SILTFS_RETURN_IF_ERROR(Stepper(*fs, i).Begin());
  SILTFS_RETURN_IF_ERROR(fs->Close());
  const std::string found = findings.Take();
  return found.empty() ? Status::Ok() : Status(StatusCode::kCorruption, found);
}

Result<std::unique_ptr<FileSystem>> OpenStore(Env& env, std::chrono::milliseconds commit_interval,
                                              FindingLog& findings, bool read_only,
                                              size_t group_bytes) {
  FileSystemOptions options;
  options.store = kStorePath;
  options.read_only = read_only;
  options.commit_interval = commit_interval;
  options.group_bytes = group_bytes;
  // After some crashes the index lacks more entries than this. They are then put in the background,
  // while the tree is compared.
  options.keep_guide = true;
  options.guide_shape.names_per_group = 48;
  options.most_replayed_at_open = 24;
  options.report = [&findings](const std::string& finding) { findings.Add(finding); };
  return FileSystem::Open(env, std::move(options));
}

Status CloseStore(FileSystem& fs) {
  for (;;) {
    const auto stats = fs.maintenance().GetStats();
    if (!stats.ok() || !stats->index_replay.running) return fs.Close();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

Result<bool> HasDeltas(FileSystem& fs) {
  SILTFS_ASSIGN_OR_RETURN(const FileSystemStats stats, fs.maintenance().GetStats());
  return stats.deltas && stats.deltas->segments > 0;
}

Status TakeSteps(SimEnv& env, Stepper& stepper, unsigned thread, OperationGenerator& generator,
                 unsigned count, FileSystem* commit_first) {
  for (size_t done = 0; done < count;) {
    if (commit_first != nullptr)
      commit_first->SyncAll().IgnoreError("the steps report the failure");
    const std::vector<Operation> steps = NextSteps(generator);
    env.SetClock(steps[0].time);
    for (const Operation& operation : steps) Marks::Begin(env, thread, operation);
    const std::vector<Stepper::CodedAnswer> answers = stepper.StepTogether(steps);
    for (const InodeNumber inode : stepper.made()) Marks::Inode(env, inode);
    for (const auto& [text, code] : answers) {
      const bool failed = IsDeviceFailure(code);
      // If the disk is full, the step has no effect. After any other failure its effect is unknown.
      if (failed && code != StatusCode::kNoSpace)
        return stepper.last().Is(code) ? stepper.last() : Status(code, text);
      Marks::End(env, thread, !failed, text);
    }
    done += steps.size();
  }
  return Status::Ok();
}

Result<SimTrace> RunSequence(const SequencePlan& plan) {
  SimEnv env(plan.seed);
  env.StartTrace();
  SILTFS_RETURN_IF_ERROR(MakeSmallStore(env, plan));
  Marks::Ready(env, plan.threads);
  Random random(plan.seed + 1);
  for (unsigned phase = 0; phase < plan.phases; ++phase) {
    SILTFS_RETURN_IF_ERROR(RunPhase(env, plan, phase, random));
  }
  return env.TakeTrace();
}

}  // namespace siltfs::testing
