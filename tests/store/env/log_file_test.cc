#include "store/env/log_file.h"

#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

TEST_CASE("after a rename, the next line goes to a new file with the old permissions") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  const auto log = LogFile::Open(path);
  REQUIRE_OK(log);
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  REQUIRE_OK((*log)->Append("one\n"));
  REQUIRE(rename(path.c_str(), (directory / "log.1").c_str()) == 0);
  REQUIRE_OK((*log)->Append("two\n"));
  REQUIRE_OK((*log)->Append("three\n"));
  CHECK(ReadTextOf(directory / "log.1") == "one\n");
  CHECK(ReadTextOf(path) == "two\nthree\n");
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0640);
}

TEST_CASE("a file that another program has put in place is appended to") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  const auto log = LogFile::Open(path);
  REQUIRE_OK(log);
  REQUIRE(rename(path.c_str(), (directory / "log.1").c_str()) == 0);
  const auto other = LogFile::Open(path);
  REQUIRE_OK(other);
  REQUIRE_OK((*other)->Append("other\n"));
  REQUIRE_OK((*log)->Append("one\n"));
  CHECK(ReadTextOf(path) == "other\none\n");
}

TEST_CASE("a line goes to the old file while there can be no new one") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  const auto log = LogFile::Open(path);
  REQUIRE_OK(log);
  REQUIRE(rename(path.c_str(), (directory / "log.1").c_str()) == 0);
  REQUIRE(mkdir(path.c_str(), 0755) == 0);
  REQUIRE_OK((*log)->Append("one\n"));
  CHECK(ReadTextOf(directory / "log.1") == "one\n");
  REQUIRE(remove(path.c_str()) == 0);
  REQUIRE_OK((*log)->Append("two\n"));
  CHECK(ReadTextOf(path) == "two\n");
}

TEST_CASE("no line is lost or torn while the file is renamed all the time") {
  const TemporaryDirectory directory;
  const std::string path = directory / "log";
  const auto log = LogFile::Open(path);
  REQUIRE_OK(log);
  int lines = 0;
  std::atomic<bool> enough = false;
  std::thread writer([&] {
    for (; !enough; ++lines)
      (*log)->Append(std::to_string(lines) + "\n").IgnoreError("the test counts the lines");
  });
  int files = 0;
  while (files < 50) {
    if (rename(path.c_str(), (path + "." + std::to_string(files)).c_str()) == 0) ++files;
  }
  enough = true;
  writer.join();
  std::string all;
  for (int i = 0; i < files; ++i) all += ReadTextOf(path + "." + std::to_string(i)).value_or("");
  all += ReadTextOf(path).value_or("");
  std::string expected;
  for (int i = 0; i < lines; ++i) expected += std::to_string(i) + "\n";
  CHECK(all == expected);
}

}  // namespace
}  // namespace siltfs::testing
