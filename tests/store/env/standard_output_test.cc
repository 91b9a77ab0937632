#include "store/env/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs {
namespace {

// Closes standard output while this object exists. The test must print nothing in this time.
class StandardOutputClosed {
 public:
  StandardOutputClosed() {
    std::fflush(stdout);
    saved_ = dup(STDOUT_FILENO);
    close(STDOUT_FILENO);
  }
  ~StandardOutputClosed() {
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
  }
  StandardOutputClosed(const StandardOutputClosed&) = delete;
  StandardOutputClosed& operator=(const StandardOutputClosed&) = delete;

  // The next opened file gets the number of the closed standard output.
  static int OpenInItsPlace(const std::string& path) {
    return open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  }

 private:
  int saved_ = -1;
};

TEST_CASE("a closed standard output never writes to a file that got its number") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory / "file";
  int opened = -1;
  bool good = true;
  std::string failure;
  {
    const StandardOutputClosed closed;
    StandardOutput output;
    opened = StandardOutputClosed::OpenInItsPlace(path);
    output.stream() << "not for the file" << std::flush;
    good = output.stream().good();
    failure = output.failure();
  }
  CHECK(opened == STDOUT_FILENO);
  CHECK_FALSE(good);
  CHECK(failure == "cannot write: Bad file descriptor");
  CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("standard output keeps the cause of the first failure, and writes nothing after it") {
  const testing::TemporaryDirectory directory;
  bool good = true;
  std::string failure;
  const std::string path = directory / "file";
  {
    const StandardOutputClosed closed;
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    StandardOutput output;
    output.stream() << std::string(1 << 20, 'x');  // more than any buffer
    good = output.stream().good();
    failure = output.failure();
    close(full);
    StandardOutputClosed::OpenInItsPlace(path);
    output.stream().clear();
    output.stream() << "a gap would go unseen" << std::flush;
  }
  CHECK_FALSE(good);
  CHECK(failure == "cannot write: No space left on device");
  CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("standard output writes everything by its destruction") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory / "file";
  {
    const StandardOutputClosed closed;
    StandardOutputClosed::OpenInItsPlace(path);
    StandardOutput output;
    output.stream() << std::string(200'000, 'x') << 'y' << 12;
  }
  CHECK(std::filesystem::file_size(path) == 200'003);
}

}  // namespace
}  // namespace siltfs
