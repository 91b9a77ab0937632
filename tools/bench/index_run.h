// One run of siltfs-bench index: fills an index, looks names up, updates entries, looks names up
// again, and reads the whole index.
//
// Errors: throws BenchFailure, also for a wrong answer. Thread-safety: one thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/env/env.h"
#include "tools/bench/index_bench_options.h"
#include "tools/bench/index_report.h"
#include "tools/bench/scratch_directory.h"

namespace siltfs {

// Parses a memory limit: a size, or "none". Throws CLI::ValidationError.
uint64_t ParseMemoryStep(std::string text);

class IndexRun {
 public:
  // Borrows `options`, which have been checked.
  explicit IndexRun(const IndexBenchOptions& options);

  // Call this once.
  nlohmann::ordered_json Run();

 private:
  void WarmUp();
  void Open();
  void Fill();
  void LookUp(IndexPhase& phase);
  void Update();
  void ReleaseMemoryOfLookups();
  void NoteEnd(IndexPhase& phase);
  nlohmann::ordered_json UpdateInStep();
  void StepMemory(const std::string& step);
  void ReadWhole();
  IndexLookups Lookups();
  nlohmann::ordered_json Statistics() const;
  void AddPlan(const EngineParameters& parameters, nlohmann::ordered_json& statistics) const;
  void AddMix(nlohmann::ordered_json& statistics) const;

  const IndexBenchOptions& options_;
  const std::unique_ptr<Env> env_;
  const IndexKeys keys_;
  const UpdateOrder order_;
  uint64_t updates_ = 0;            // made so far
  const ScratchDirectory scratch_;  // destroyed after the members that have files in it
  const std::string directory_;     // of the index
  IndexProgress progress_;
  std::unique_ptr<IndexLoad> loading_;
  std::unique_ptr<ChunkIndex> index_;
  std::unique_ptr<MemoryMeter> memory_;
  std::unique_ptr<MemoryTrace> trace_;
  std::unique_ptr<DeviceReads> device_;
  IndexStats filled_;  // after the growth
  IndexPhase growth_;
  IndexPhase update_phase_;
  double scan_seconds_ = 0;
  std::vector<nlohmann::ordered_json> steps_;
};

}  // namespace siltfs
