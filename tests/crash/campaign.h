// Many sequences, each cut at many places (sequence_cuts.h), in several processes: one that aborts
// or hangs is a finding, too.
//
// Thread-safety: call it from a process that has no other thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/crash/injection.h"

namespace siltfs::testing {

struct CampaignOptions {
  uint64_t cuts = 1000;
  uint64_t seed = 1;
  unsigned jobs = 1;
  Injection injection = Injection::kNone;
  // Threads pause at locks and conditions, in a way that each sequence's seed decides
  // (tests/support/schedule_perturbation.h).
  bool perturb = false;
  bool rot = false;            // bytes rot instead of the power going
  std::string save_directory;  // where what fails is saved; empty: nowhere
  // Called every few seconds.
  std::function<void(uint64_t cuts, uint64_t illegal)> progress;
};

struct CampaignProblem {
  std::string place;  // the sequence's seed, the step, what survived
  std::string what;
  std::string file;  // to be replayed; empty if it was not saved
};

struct CampaignResult {
  uint64_t cuts = 0;
  uint64_t illegal = 0;
  uint64_t sequences = 0;
  uint64_t recoveries_cut = 0;  // of the cuts, those that fell into a recovery or what followed it
  uint64_t noticed = 0;         // of the bytes that rotted, those that the store spoke of
  std::vector<CampaignProblem> problems;  // the first few
};

CampaignResult RunCampaign(const CampaignOptions& options);

}  // namespace siltfs::testing
