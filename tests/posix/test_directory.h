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

// The fixture of test cases that use the tested file system.
struct OnTheFileSystem {
  TestDirectory directory;

  std::string Path(const std::string& name) const { return directory / name; }
};

// Returns the root of the tested file system.
std::string FileSystemRoot();

// Writes all data back. Then drops all names, attributes and pages that are not in use from the
// kernel's caches.
void DropCaches();

// Returns one number of `siltfs stat --json` for the mounted store.
double StoreFigure(const std::string& name);

}  // namespace siltfs::testing
