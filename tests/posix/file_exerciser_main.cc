// file_exerciser: performs random operations on one file and compares it with a model. See
// file_exerciser.h.
#include <unistd.h>

#include <cstdio>
#include <exception>

#include <CLI/CLI.hpp>

#include "tests/posix/file_exerciser.h"
#include "tests/support/test_scale.h"

namespace {

using siltfs::testing::FileExerciser;
using siltfs::testing::FileExerciserOptions;

// The seed chooses one of these shapes of files.
struct Shape {
  uint64_t max_size;
  uint64_t alignment;
};
constexpr Shape kShapes[] = {{256 << 10, 1},   {64 << 10, 1}, {1 << 20, 1},    {256 << 10, 4096},
                             {512 << 10, 512}, {30'000, 1},   {2 << 20, 4096}, {128 << 10, 7}};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Does random operations on one file, and compares it with a model");
  std::string directory = ".";
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  FileExerciserOptions options;
  options.max_size = options.alignment = 0;
  app.add_option("directory", directory, "directory of the file")
      ->envname("SILTFS_POSIX_DIRECTORY");
  app.add_option("--seed", first_seed, "seed of the random numbers");
  app.add_option("--seeds", seeds, "number of runs, each with the next seed");
  app.add_option("--operations", options.operations, "operations per run");
  app.add_option("--size", options.max_size, "largest size of the file (default: by the seed)");
  app.add_option("--align", options.alignment,
                 "alignment of offsets and lengths (default: by the seed)");
  bool share = false;
  app.add_flag("--share", share, "do only a part of --operations: SILTFS_TEST_SCALE tenths");
  CLI11_PARSE(app, argc, argv);
  if (share) options.operations = siltfs::testing::Share(options.operations);
  try {
    for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
      const Shape& shape = kShapes[(seed - 1) % std::size(kShapes)];
      FileExerciserOptions run = options;
      run.path = directory + "/exercised-" + std::to_string(seed);
      run.seed = seed;
      if (run.max_size == 0) run.max_size = shape.max_size;
      if (run.alignment == 0) run.alignment = shape.alignment;
      FileExerciser(run).Run();
      unlink(run.path.c_str());
      std::printf("seed %llu: %llu operations on up to %llu bytes, aligned to %llu: the same\n",
                  static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(run.operations),
                  static_cast<unsigned long long>(run.max_size),
                  static_cast<unsigned long long>(run.alignment));
      std::fflush(stdout);
    }
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "FAILED: %s\n", failure.what());
    return 1;
  }
  return 0;
}
