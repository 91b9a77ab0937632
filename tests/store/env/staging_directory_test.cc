// Staging directories of exports: they are removed when their owner is gone, and never before.
#include "store/env/staging_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

struct Fixture {
  testing::TemporaryDirectory place;
  const Descriptor parent{open(place.path().c_str(), O_RDONLY | O_DIRECTORY)};

  bool Empty() const { return std::filesystem::is_empty(place.path()); }
  // Makes what a run that was killed leaves.
  void Abandon(const std::string& name) const {
    const std::string path = place.path() + "/" + name;
    REQUIRE(mkdir(path.c_str(), 0700) == 0);
    std::ofstream(path + "/0") << "a part of a file";
    REQUIRE(symlink("nowhere", (path + "/1").c_str()) == 0);
  }
};

// Makes a file in the staging directory. False if the directory is gone.
bool MakeFile(StagingDirectory& staging) {
  const std::string name = staging.NewName();
  const Descriptor file(
      openat(staging.fd().get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
  return file.valid() && unlinkat(staging.fd().get(), name.c_str(), 0) == 0;
}

TEST_CASE_METHOD(Fixture, "A staging directory is private, and gone with its owner") {
  {
    const auto staging = StagingDirectory::Make(parent);
    REQUIRE_OK(staging);
    struct stat info = {};
    REQUIRE(fstat((*staging)->fd().get(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    CHECK(!Empty());
    CHECK((*staging)->NewName() != (*staging)->NewName());
  }
  CHECK(Empty());
}

TEST_CASE_METHOD(Fixture, "What a killed owner has left is removed, and what is in use is not") {
  Abandon(".siltfs-export-1-2-3");
  auto used = StagingDirectory::Make(parent);
  REQUIRE_OK(used);
  StagingDirectory::RemoveAbandoned(parent);
  CHECK(!std::filesystem::exists(place.path() + "/.siltfs-export-1-2-3"));
  CHECK(MakeFile(**used));
  used->reset();
  CHECK(Empty());
}

TEST_CASE_METHOD(Fixture, "No owner loses its directory while others remove abandoned ones") {
  constexpr int kRounds = 2000;
  std::atomic<bool> ended{false};
  std::atomic<int> lost{0};
  std::thread remover([&] {
    while (!ended) StagingDirectory::RemoveAbandoned(parent);
  });
  std::vector<std::thread> owners;
  for (int i = 0; i < 2; ++i) {
    owners.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const auto staging = StagingDirectory::Make(parent);
        if (!staging.ok() || !MakeFile(**staging)) ++lost;
        staging.status().IgnoreError("is counted");
      }
    });
  }
  for (std::thread& owner : owners) owner.join();
  ended = true;
  remover.join();
  CHECK(lost == 0);
  StagingDirectory::RemoveAbandoned(parent);
  CHECK(Empty());
}

}  // namespace
}  // namespace siltfs
