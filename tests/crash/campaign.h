// Runs many sequences in several processes; each sequence is cut at many places (sequence_cuts.h).
// A process that aborts or hangs is a finding, too.
//
// Thread-safety: call it from a process that has no other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/crash/injection.h"
#include "tests/crash/sequence.h"

namespace siltfs::testing {

struct CampaignOptions {
  uint64_t cuts = 1000;
  uint64_t seed = 1;
  unsigned jobs = 1;
  Workload workload = Workload::kPrograms;
  Injection injection = Injection::kNone;
  // If true, threads pause at locks and conditions. Each sequence's seed decides how
  // (tests/support/schedule_perturbation.h).
  bool perturb = false;
  bool rot = false;            // let bytes rot instead of cutting the power
  bool bucket = false;         // a store in a bucket instead (bucket_sequence.h)
  std::string save_directory;  // for failing cuts; empty: they are not saved
  // Called every few seconds.
  std::function<void(uint64_t cuts, uint64_t illegal)> progress;
};

struct CampaignProblem {
  std::string place;  // the sequence's seed; for each cut its place and the surviving writes
  std::string what;
  std::string file;  // for --replay; empty if it was not saved
};

struct CampaignResult {
  uint64_t cuts = 0;
  uint64_t illegal = 0;
  uint64_t sequences = 0;
  // Cuts during a recovery or the steps after it; with `bucket`, lost disks and takeovers.
  uint64_t recoveries_cut = 0;
  uint64_t delta_sequences = 0;           // in stores made with deltas
  uint64_t delta_cuts = 0;                // cuts of stores that had deltas
  uint64_t noticed = 0;                   // rotten bytes that the store reported
  std::vector<CampaignProblem> problems;  // the first few
};

// A campaign that should have made cuts in stores with deltas, and made too few, is illegal.
CampaignResult RunCampaign(const CampaignOptions& options);

}  // namespace siltfs::testing
