#include "store/env/published_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace siltfs::testing {
namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ptrdiff_t FilesIn(const TemporaryDirectory& directory) {
  return std::distance(std::filesystem::directory_iterator(directory.path()), {});
}

TEST_CASE("a published file has the content, and all users may read it whatever the umask is") {
  const TemporaryDirectory directory;
  const std::string path = directory / "file.prom";
  const mode_t umask_before = umask(0077);
  const Status first = PublishFile(path, "one\n");
  umask(umask_before);
  REQUIRE_OK(first);
  CHECK(ContentOf(path) == "one\n");
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
  REQUIRE_OK(PublishFile(path, std::string(100'000, 'x')));
  CHECK(ContentOf(path) == std::string(100'000, 'x'));
  CHECK(FilesIn(directory) == 1);
}

TEST_CASE("a reader of a published file keeps the content that it has opened") {
  const TemporaryDirectory directory;
  const std::string path = directory / "file.prom";
  REQUIRE_OK(PublishFile(path, "old content"));
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(opened >= 0);
  REQUIRE_OK(PublishFile(path, "new"));
  std::string read(100, '\0');
  const ssize_t size = ::read(opened, read.data(), read.size());
  close(opened);
  REQUIRE(size > 0);
  CHECK(read.substr(0, static_cast<size_t>(size)) == "old content");
  CHECK(ContentOf(path) == "new");
}

TEST_CASE("only a regular file is replaced by a published file") {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "directory");
  std::ofstream(directory / "target") << "target";
  std::filesystem::create_symlink("target", directory / "link");
  CHECK(PublishFile(directory / "directory", "x").Is(StatusCode::kInvalidArgument));
  CHECK(PublishFile(directory / "link", "x").Is(StatusCode::kInvalidArgument));
  CHECK(PublishFile("/dev/null", "x").Is(StatusCode::kInvalidArgument));
  CHECK(PublishFile(directory / "none/file", "x").Is(StatusCode::kNotFound));
  CHECK(ContentOf(directory / "target") == "target");
  CHECK(FilesIn(directory) == 3);
}

}  // namespace
}  // namespace siltfs::testing
