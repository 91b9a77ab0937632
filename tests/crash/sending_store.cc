#include "tests/crash/sending_store.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "fs/interface/snapshots.h"
#include "store/env/sim_env.h"
#include "tests/crash/model_file_system.h"
#include "tests/crash/operation_generator.h"
#include "tests/crash/sequence.h"
#include "tests/crash/stepper.h"

namespace siltfs::testing {
namespace {

// Not the seed of any other device, so that no other store has the same UUID.
constexpr uint64_t kSeed = 0x53454e44;
constexpr unsigned kStepsPerSnapshot = 24;
constexpr uint32_t kLargestWrite = 8192;

void Require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "the sending store cannot be made: %s\n", status.ToString().c_str());
  std::abort();
}

// Takes the same steps on each file system. Each thread has a directory already.
void Fill(FileSystem& fs, const std::function<void(int64_t)>& set_time) {
  int64_t time = kFirstTime;
  std::vector<Stepper> steppers;
  std::vector<OperationGenerator> generators;
  for (unsigned thread = 0; thread < kSentThreads; ++thread) {
    steppers.emplace_back(fs, thread);
    generators.emplace_back(kSeed + thread, kLargestWrite, OperationGenerator::Mix::kAll);
  }
  for (unsigned nth = 0; nth < kSentSnapshots; ++nth) {
    for (unsigned thread = 0; thread < kSentThreads; ++thread) {
      for (unsigned step = 0; step < kStepsPerSnapshot; ++step) {
        const Operation operation = generators[thread].Next();
        time = std::max(time, operation.time);
        set_time(operation.time);
        steppers[thread].Step(operation);
      }
      set_time(++time);
      Require(fs.snapshots().Create(SnapshotName(thread, SentName(nth))).status());
    }
  }
  for (Stepper& stepper : steppers) stepper.ReleaseAll();
}

struct Real {
  Real() : env(kSeed) {
    SequencePlan plan = PlanSequence(kSeed, Workload::kSnapshots);
    plan.threads = kSentThreads;
    Require(MakeSmallStore(env, plan));
    auto opened = OpenStore(env, std::chrono::hours(1), findings);
    Require(opened.status());
    fs = std::move(opened).value();
    Fill(*fs, [this](int64_t time) { env.SetClock(time); });
    Require(fs->SyncAll());
  }

  SimEnv env;
  FindingLog findings;
  std::unique_ptr<FileSystem> fs;
};

struct Model {
  Model() : fs([this] { return now; }, [](FileSystem&) { return std::string(); }) {
    for (unsigned thread = 0; thread < kSentThreads; ++thread) Require(Stepper(fs, thread).Begin());
    Fill(fs, [this](int64_t time) { now = time; });
  }

  int64_t now = kFirstTime;
  ModelFileSystem fs;
};

}  // namespace

std::string SentName(unsigned nth) { return fmt::format("p{}", nth); }

bool IsSentName(const std::string& name) { return name.starts_with("p"); }

// The objects are never destroyed: threads of workers may use them until the process ends.
FileSystem& SendingStore() {
  static Real& real = *new Real;
  return *real.fs;
}

FileSystem& ModelOfSendingStore() {
  static Model& model = *new Model;
  return model.fs;
}

}  // namespace siltfs::testing
