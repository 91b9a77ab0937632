// A test's own directory on the tested file system, removed with its contents when the test ends.
// SILTFS_POSIX_DIRECTORY names the file system; without it a test fails.
#pragma once

#include <string>

namespace siltfs::testing {

class TestDirectory {
 public:
  TestDirectory();  // all users may write here; sets the umask to 0
  ~TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The fixture of test cases.
struct OnTheFileSystem {
  TestDirectory directory;

  std::string Path(const std::string& name) const { return directory / name; }
};

// The file system's root.
std::string FileSystemRoot();

// Writes everything back, and drops all names, attributes and pages that are not in use from the
// kernel's caches.
void DropCaches();

// One number of `siltfs stat --json` of the mounted store.
double StoreFigure(const std::string& name);

}  // namespace siltfs::testing
