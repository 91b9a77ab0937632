// A directory of a test's own on the file system that is tested, gone with all that is in it when
// the test ends. Where that file system is says SILTFS_POSIX_DIRECTORY; without it a test fails.
#pragma once

#include <string>

namespace siltfs::testing {

class TestDirectory {
 public:
  TestDirectory();  // everyone may write here; the umask is 0 from then on
  ~TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What test cases stand on.
struct OnTheFileSystem {
  TestDirectory directory;

  std::string Path(const std::string& name) const { return directory / name; }
};

// The file system's root.
std::string FileSystemRoot();

// Everything written has reached the file system, and the kernel holds no names, attributes or
// pages that nobody uses.
void DropCaches();

// One number of `siltfs stat --json` of the mounted store.
double StoreFigure(const std::string& name);

}  // namespace siltfs::testing
