// siltfs-crashtest: repeatedly cuts the power of a simulated device under a whole store.
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tests/crash/bucket_sequence.h"
#include "tests/crash/campaign.h"
#include "tests/crash/cut.h"
#include "tests/support/test_scale.h"

namespace siltfs::testing {
namespace {

enum ExitCode : int { kLegal = 0, kIllegal = 1, kUsage = 2 };

nlohmann::ordered_json ToJson(const std::vector<CampaignProblem>& problems) {
  auto list = nlohmann::ordered_json::array();
  for (const CampaignProblem& problem : problems) {
    list.push_back({{"place", problem.place}, {"what", problem.what}, {"file", problem.file}});
  }
  return list;
}

int Replay(const std::string& path, bool json) {
  auto chain = LoadChain(path);
  if (!chain.ok()) {
    fmt::print(std::cerr, "siltfs-crashtest: {}\n", chain.status().ToString());
    return kUsage;
  }
  auto outcome = ReplayChain(*chain);
  const std::string problem = outcome.ok() ? outcome->problem : outcome.status().ToString();
  if (json) {
    std::vector<CampaignProblem> problems;
    if (!problem.empty()) problems.push_back({.place = "replayed", .what = problem, .file = path});
    const nlohmann::ordered_json document = {
        {"cuts", 1}, {"illegal", problems.size()}, {"problems", ToJson(problems)}};
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("{}\n", problem.empty() ? "legal" : problem);
  }
  return problem.empty() ? kLegal : kIllegal;
}

int RunOne(uint64_t seed, uint64_t limit) {
  bool legal = true;
  RunBucketSequence(seed, limit, [&legal](const BucketPoint& point) {
    fmt::print("{}: {}\n", point.place, point.problem.empty() ? "legal" : point.problem);
    legal = legal && point.problem.empty();
  });
  return legal ? kLegal : kIllegal;
}

void Print(const CampaignOptions& options, const CampaignResult& result, double seconds,
           bool json) {
  for (const CampaignProblem& problem : result.problems) {
    fmt::print(std::cerr, "siltfs-crashtest: seed {}: {}: {}{}\n", options.seed, problem.place,
               problem.what, problem.file.empty() ? "" : " (saved as " + problem.file + ")");
  }
  if (!json) {
    if (options.bucket) {
      fmt::print(
          "{} points ({} lost disks or takeovers) of {} sequences in {:.1f} s, seed {}: {}\n",
          result.cuts, result.recoveries_cut, result.sequences, seconds, options.seed,
          result.illegal == 0 ? "all legal" : fmt::format("{} ILLEGAL", result.illegal));
      return;
    }
    if (options.rot) {
      fmt::print(
          "{} rotten bytes ({} of them noticed, {} beside deltas) of {} sequences in {:.1f} s, "
          "seed "
          "{}: {}\n",
          result.cuts, result.noticed, result.delta_cuts, result.sequences, seconds, options.seed,
          result.illegal == 0 ? "all legal" : fmt::format("{} ILLEGAL", result.illegal));
      return;
    }
    fmt::print(
        "{} power cuts ({} of them in a recovery, {} beside deltas) of {} sequences ({} with "
        "deltas) "
        "in {:.1f} s, seed {}: {}\n",
        result.cuts, result.recoveries_cut, result.delta_cuts, result.sequences,
        result.delta_sequences, seconds, options.seed,
        result.illegal == 0 ? "all legal" : fmt::format("{} ILLEGAL", result.illegal));
    return;
  }
  const nlohmann::ordered_json document = {{"cuts", result.cuts},
                                           {"illegal", result.illegal},
                                           {"seed", options.seed},
                                           {"sequences", result.sequences},
                                           {"recoveries_cut", result.recoveries_cut},
                                           {"delta_sequences", result.delta_sequences},
                                           {"delta_cuts", result.delta_cuts},
                                           {"noticed", result.noticed},
                                           {"seconds", seconds},
                                           {"problems", ToJson(result.problems)}};
  fmt::print("{}\n", document.dump(2));
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Runs random sequences of operations on a store on a simulated device. Cuts the power before "
      "many of the writes and syncs, and checks that each surviving state keeps the store's "
      "promises",
      "siltfs-crashtest");
  CampaignOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  std::string inject;
  std::string replay;
  std::optional<uint64_t> sequence;
  bool json = false;
  bool quiet = false;
  bool share = false;
  bool entries = false;
  bool deltas = false;
  bool snapshots = false;
  bool quotas = false;
  app.add_option("--cuts", options.cuts, "Number of power cuts")->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of all random choices")->capture_default_str();
  app.add_option("--jobs", options.jobs, "Number of processes")->check(CLI::Range(1, 256));
  app.add_option("--inject", inject, "Break the store on purpose")
      ->check(CLI::IsMember({"skip-segment-sync", "swap-commit-order", "drop-directory-sync"}));
  app.add_flag("--perturb", options.perturb,
               "Let threads pause at locks and conditions, to expose races");
  app.add_flag("--rot", options.rot,
               "Instead of cutting the power, kill the process and let a byte rot, --cuts times");
  app.add_flag("--entries", entries,
               "Put whole entries, as imports do, among the other operations");
  app.add_flag("--deltas", deltas, "Make all stores with deltas, and write versions of files")
      ->excludes("--entries");
  app.add_flag("--snapshots", snapshots,
               "Make, receive, restore and remove snapshots among the other operations")
      ->excludes("--entries")
      ->excludes("--deltas");
  app.add_flag("--quotas", quotas, "As --snapshots, in a directory that gets and loses a quota")
      ->excludes("--entries")
      ->excludes("--deltas")
      ->excludes("--snapshots");
  auto* const bucket = app.add_flag("--bucket", options.bucket,
                                    "Instead, let a store in a bucket lose its power, its whole "
                                    "disk or its writer, --cuts times");
  for (const char* other :
       {"--inject", "--rot", "--entries", "--deltas", "--snapshots", "--quotas"})
    bucket->excludes(other);
  app.add_option("--sequence", sequence, "With --bucket: run the sequence with this seed only")
      ->needs(bucket);
  app.add_option("--save", options.save_directory, "Save failing cuts in this directory")
      ->check(CLI::ExistingDirectory);
  app.add_option("--replay", replay, "Replay a saved cut")->check(CLI::ExistingFile);
  app.add_flag("--json", json, "Print one JSON document");
  app.add_flag("--quiet", quiet, "Do not print the progress");
  app.add_flag("--share", share, "Make only a part of --cuts: SILTFS_TEST_SCALE tenths");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wish) {  // help
    return app.exit(wish);
  } catch (const CLI::ParseError& mistake) {
    fmt::print(std::cerr, "siltfs-crashtest: {} (try siltfs-crashtest --help)\n", mistake.what());
    return kUsage;
  }
  if (sequence) return RunOne(*sequence, options.cuts);
  if (!replay.empty()) return Replay(replay, json);
  if (!inject.empty()) options.injection = *ParseInjection(inject);
  if (deltas) options.workload = Workload::kVersions;
  if (entries) options.workload = Workload::kImports;
  if (snapshots) options.workload = Workload::kSnapshots;
  if (quotas) options.workload = Workload::kQuotas;
  if (share) options.cuts = Share(options.cuts);
  if (!quiet) {
    options.progress = [&options](uint64_t cuts, uint64_t illegal) {
      fmt::print(std::cerr, "{} of {} cuts, {} illegal\n", cuts, options.cuts, illegal);
    };
  }
  const auto start = std::chrono::steady_clock::now();
  const CampaignResult result = RunCampaign(options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Print(options, result, took.count(), json);
  return result.illegal == 0 ? kLegal : kIllegal;
}

}  // namespace
}  // namespace siltfs::testing

int main(int argc, char** argv) { return siltfs::testing::Run(argc, argv); }
