// Tests readdir(3) and its positions while the directory changes.
#include <dirent.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>

#include "tests/fs/fuse/posix_calls.h"
#include "tests/posix/processes.h"
#include "tests/posix/test_directory.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

class Listing {
 public:
  explicit Listing(const std::string& path) : stream_(opendir(path.c_str())) {
    if (stream_ == nullptr) throw std::runtime_error("opendir " + path);
  }
  ~Listing() { closedir(stream_); }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;

  DIR* stream() const { return stream_; }
  // Returns the next name; "" at the end.
  std::string Next() {
    errno = 0;
    entry_ = readdir(stream_);
    if (entry_ == nullptr && errno != 0) throw std::runtime_error("readdir");
    return entry_ == nullptr ? "" : entry_->d_name;
  }
  const dirent& entry() const { return *entry_; }
  std::vector<std::string> Rest() {
    std::vector<std::string> names;
    for (std::string name = Next(); !name.empty(); name = Next()) names.push_back(name);
    return names;
  }

 private:
  DIR* stream_;
  const dirent* entry_ = nullptr;
};

struct Directory : OnTheFileSystem {
  std::string Name(int i) const { return Path("d/entry-" + std::to_string(i)); }
  void Make(int from, int to) const {
    for (int i = from; i < to; ++i) {
      REQUIRE(Outcome(mknod(Name(i).c_str(), S_IFREG | 0600, 0)) == 0);
    }
  }
  Directory() { REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0); }
};

TEST_CASE_METHOD(Directory, "An empty directory has two entries") {
  Listing listing(Path("d"));
  const std::vector<std::string> names = listing.Rest();
  CHECK(std::set<std::string>(names.begin(), names.end()) == std::set<std::string>{".", ".."});
  CHECK(names.size() == 2);
}

TEST_CASE_METHOD(Directory, "Entries have the inode number and type") {
  Make(0, 1);
  REQUIRE(Outcome(mkdir(Path("d/sub").c_str(), 0755)) == 0);
  REQUIRE(Outcome(symlink("x", Path("d/link").c_str())) == 0);
  REQUIRE(Outcome(mkfifo(Path("d/fifo").c_str(), 0600)) == 0);
  const std::map<std::string, unsigned char> types = {{".", DT_DIR},       {"..", DT_DIR},
                                                      {"entry-0", DT_REG}, {"sub", DT_DIR},
                                                      {"link", DT_LNK},    {"fifo", DT_FIFO}};
  Listing listing(Path("d"));
  size_t count = 0;
  for (std::string name = listing.Next(); !name.empty(); name = listing.Next(), ++count) {
    INFO(name);
    REQUIRE(types.contains(name));
    CHECK(listing.entry().d_type == types.at(name));
    CHECK(listing.entry().d_ino == StatOf(Path("d/" + name)).st_ino);
  }
  CHECK(count == types.size());
}

TEST_CASE_METHOD(Directory, "Rewinding shows entries made and removed since") {
  Make(0, 10);
  Listing listing(Path("d"));
  CHECK(listing.Rest().size() == 12);
  Make(10, 15);
  for (int i = 0; i < 3; ++i) REQUIRE(Outcome(unlink(Name(i).c_str())) == 0);
  rewinddir(listing.stream());
  const auto names = listing.Rest();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == 14);
  CHECK(names.size() == 14);
}

TEST_CASE_METHOD(Directory, "A position leads back to the same entry after any changes") {
  Make(0, 3000);
  Listing listing(Path("d"));
  std::map<long, std::string> at;
  for (long position = telldir(listing.stream());; position = telldir(listing.stream())) {
    const std::string name = listing.Next();
    if (name.empty()) break;
    at[position] = name;
  }
  REQUIRE(at.size() == 3002);
  for (int i = 0; i < 3000; i += 3) REQUIRE(Outcome(unlink(Name(i).c_str())) == 0);
  Make(3000, 3100);
  int tried = 0;
  for (const auto& [position, name] : at) {
    if (Outcome(access(Path("d/" + name).c_str(), F_OK)) != 0 || ++tried % 50 != 0) continue;
    seekdir(listing.stream(), position);
    REQUIRE(listing.Next() == name);
  }
  CHECK(tried > 1900);
}

TEST_CASE_METHOD(Directory,
                 "Names that stay are listed exactly once while others are made and removed") {
  constexpr int kStaying = 1500;
  Make(0, kStaying);
  // Ask the child to end instead of killing it. If a process is killed while it removes a file, the
  // inode's times cannot be written. Linux reports this to the next syncfs of any process as an
  // error (EINTR, later EIO).
  const std::string stop = Path("stop");
  ChildProcess changer([&] {
    for (int round = 0; access(stop.c_str(), F_OK) != 0; ++round) {
      for (int i = 0; i < 40; ++i) {
        const std::string name =
            Path("d/passing-" + std::to_string(round) + "-" + std::to_string(i));
        if (mknod(name.c_str(), S_IFREG | 0600, 0) != 0) return errno;
        if (i % 2 == 0 && unlink(name.c_str()) != 0) return errno;
        if (i % 4 == 1 && rename(name.c_str(), (name + "-renamed").c_str()) != 0) return errno;
      }
    }
    return 0;
  });
  for (int round = 0; round < 5; ++round) {
    Listing listing(Path("d"));
    std::map<std::string, int> seen;
    for (const std::string& name : listing.Rest()) ++seen[name];
    int staying = 0;
    for (const auto& [name, times] : seen) {
      if (!name.starts_with("entry-")) continue;
      ++staying;
      if (times != 1) FAIL_CHECK(name << " was listed " << times << " times");
    }
    CHECK(staying == kStaying);
  }
  const Descriptor told(stop, O_WRONLY | O_CREAT);
  CHECK(changer.Wait() == 0);
}

TEST_CASE_METHOD(Directory, "Removing entries while listing removes all of them") {
  Make(0, 2000);
  Listing listing(Path("d"));
  int removed = 0;
  for (std::string name = listing.Next(); !name.empty(); name = listing.Next()) {
    if (name == "." || name == "..") continue;
    REQUIRE(Outcome(unlink(Path("d/" + name).c_str())) == 0);
    ++removed;
  }
  CHECK(removed == 2000);
  CHECK(Outcome(rmdir(Path("d").c_str())) == 0);
}

}  // namespace
}  // namespace siltfs::testing
