// tree_exerciser: runs several processes in one tree, and checks the tree afterwards. Prints a line
// for each entry. See tree_exerciser.h and tree_digest.h.
#include <sys/stat.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "tests/posix/processes.h"
#include "tests/posix/tree_digest.h"
#include "tests/posix/tree_exerciser.h"

namespace siltfs::testing {
namespace {

int Exercise(const std::string& root, uint64_t seed, uint64_t operations) {
  try {
    TreeExerciser exerciser(root, seed);
    exerciser.Run(operations);
    std::string text = "seed " + std::to_string(seed) + " did";
    for (const auto& [call, count] : exerciser.successes()) {
      text += " " + std::string(call) + " " + std::to_string(count);
    }
    std::fprintf(stderr, "%s\n", text.c_str());
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAILED: %s\n", failure.what());
    return 1;
  }
}

bool ExerciseTogether(const std::string& root, uint64_t first_seed, uint64_t processes,
                      uint64_t operations) {
  std::vector<std::unique_ptr<ChildProcess>> workers;
  for (uint64_t seed = first_seed; seed < first_seed + processes; ++seed) {
    workers.push_back(
        std::make_unique<ChildProcess>([&, seed] { return Exercise(root, seed, operations); }));
  }
  bool good = true;
  for (const auto& worker : workers) good = worker->Wait() == 0 && good;
  return good;
}

bool PrintDigest(const std::string& root, bool fresh) {
  try {
    const TreeDigest tree = DigestTree(root, fresh);
    for (const std::string& line : tree.lines) std::printf("%s\n", line.c_str());
    std::fprintf(stderr, "%zu entries, %llu bytes\n", tree.lines.size(),
                 static_cast<unsigned long long>(tree.bytes));
    return true;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAILED: %s\n", failure.what());
    return false;
  }
}

}  // namespace
}  // namespace siltfs::testing

int main(int argc, char** argv) {
  CLI::App app("Several processes do random operations in one tree, which is then checked");
  std::string root;
  uint64_t seed = 1;
  uint64_t processes = 4;
  uint64_t operations = 4000;
  app.add_option("directory", root, "the tree; made if missing")->required();
  app.add_option("--seed", seed, "seed of the first process; each process has the next one")
      ->take_last();
  app.add_option("--processes", processes, "number of processes");
  app.add_option("--operations", operations,
                 "operations per process; 0: only check the tree, which must be unchanged since "
                 "the kernel's caches were dropped");
  CLI11_PARSE(app, argc, argv);
  mkdir(root.c_str(), 0755);  // it may exist
  if (operations > 0 && !siltfs::testing::ExerciseTogether(root, seed, processes, operations)) {
    return 1;
  }
  return siltfs::testing::PrintDigest(root, operations == 0) ? 0 : 1;
}
