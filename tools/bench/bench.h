// The interface of a benchmark. Each benchmark has its own file and verifies the answers of the
// measured component. It returns its statistics as one JSON object, which siltfs-bench prints.
#pragma once

#include <functional>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace siltfs {

// Thrown if the measured component gave a wrong answer or failed.
class BenchFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Declares a benchmark's options on `app` and returns the function to run after they are parsed.
// That function may throw BenchFailure.
using ConfigureBench = std::function<nlohmann::ordered_json()> (*)(CLI::App& app);

std::function<nlohmann::ordered_json()> ConfigureAttachIndex(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureChunkerBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureChunksBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureCuckooBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureDeltaBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureIndexBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureMarkBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureOpenBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureSliceBloomBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureStoresBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureTraceBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureTrieBench(CLI::App& app);
std::function<nlohmann::ordered_json()> ConfigureValuesBench(CLI::App& app);

}  // namespace siltfs
