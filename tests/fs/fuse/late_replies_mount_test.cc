// Late replies: they carry a directory's attributes from before a change by another thread, and
// arrive after the change.
#include <dirent.h>
#include <fmt/format.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstdio>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "fs/fuse/attribute_reply_tracker.h"
#include "store/base/thread_annotations.h"
#include "tests/fs/fuse/mounted_file_system.h"
#include "tests/fs/fuse/posix_calls.h"
#include "tests/support/acl_text.h"
#include "tests/support/catch.h"
#include "tests/support/memory_file_system.h"

namespace siltfs::testing {
namespace {

constexpr const char* kAccess = "system.posix_acl_access";

// Lets a thread that has read a directory's attributes wait until the gate is opened.
class Gate {
 public:
  // Delays one read of the directory's attributes: the `turn`th from now on; 1 is the next.
  void Hold(InodeNumber directory, int turn) {
    const MutexLock lock(mutex_);
    directory_ = directory;
    turns_left_ = turn;
    state_ = State::kWaiting;
  }
  void Pass(InodeNumber read) {
    const MutexLock lock(mutex_);
    if (state_ != State::kWaiting || read != directory_ || --turns_left_ > 0) return;
    state_ = State::kHolds;
    changed_.NotifyAll();
    while (state_ == State::kHolds) changed_.Wait(mutex_);
  }
  // False if the gate was opened without having delayed a read.
  bool AwaitHeld() {
    const MutexLock lock(mutex_);
    while (state_ == State::kWaiting) changed_.Wait(mutex_);
    return state_ == State::kHolds;
  }
  void Open() {
    const MutexLock lock(mutex_);
    state_ = State::kOpen;
    changed_.NotifyAll();
  }

 private:
  enum class State { kOpen, kWaiting, kHolds };

  Mutex mutex_;
  CondVar changed_;
  State state_ SILTFS_GUARDED_BY(mutex_) = State::kOpen;
  InodeNumber directory_ SILTFS_GUARDED_BY(mutex_) = 0;
  int turns_left_ SILTFS_GUARDED_BY(mutex_) = 0;
};

// The clock advances a second with each reading, so every change is visible.
class GatedFileSystem final : public MemoryFileSystem {
 public:
  GatedFileSystem()
      : MemoryFileSystem([now = int64_t{0}]() mutable { return now += 1'000'000'000; }) {}

  Result<Attributes> Lookup(InodeNumber parent, std::string_view name) override {
    Result<Attributes> found = MemoryFileSystem::Lookup(parent, name);
    if (found.ok()) gate.Pass(found->inode);
    return found;
  }
  Result<Attributes> GetAttributes(InodeNumber inode) override {
    Result<Attributes> read = MemoryFileSystem::GetAttributes(inode);
    gate.Pass(inode);
    return read;
  }
  Gate gate;
};

// Asks for the directory's attributes, past the kernel's cache.
void AskFor(const std::string& path, unsigned mask) {
  struct statx attributes = {};
  static_cast<void>(statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC, mask, &attributes));
}

void List(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) return;
  while (readdir(directory) != nullptr) {
  }
  closedir(directory);
}

// Calls that make the kernel ask for the attributes of the directory "d", although it has cached
// its name and attributes. While they wait for the reply, the calls hold no lock of "d", but may
// hold one of the root.
struct Question {
  const char* name;
  void (*ask)(const MountedFileSystem& mount);
};
constexpr Question kQuestions[] = {
    {"GETATTR", [](const MountedFileSystem& mount) { AskFor(mount / "d", STATX_BASIC_STATS); }},
    {"STATX",
     [](const MountedFileSystem& mount) { AskFor(mount / "d", STATX_BASIC_STATS | STATX_BTIME); }},
    // The new object must not exist; the kernel checks that with a lookup.
    {"LOOKUP",
     [](const MountedFileSystem& mount) { static_cast<void>(mkdir((mount / "d").c_str(), 0755)); }},
    {"READDIRPLUS", [](const MountedFileSystem& mount) { List(mount.path()); }},
};

// Changes of `d`, and some also of `e`. Each returns the outcome of the system call.
struct Change {
  const char* name;
  long (*make)(int d, int e);
};
constexpr Change kChanges[] = {
    {"mkdir", [](int d, int) -> long { return mkdirat(d, "new", 0755); }},
    {"rmdir", [](int d, int) -> long { return unlinkat(d, "directory", AT_REMOVEDIR); }},
    {"create",
     [](int d, int) -> long { return close(openat(d, "new", O_CREAT | O_WRONLY, 0644)); }},
    {"mkfifo", [](int d, int) -> long { return mkfifoat(d, "new", 0644); }},
    {"symlink", [](int d, int) -> long { return symlinkat("target", d, "new"); }},
    {"link", [](int d, int e) -> long { return linkat(e, "file", d, "new", 0); }},
    {"unlink", [](int d, int) -> long { return unlinkat(d, "file", 0); }},
    {"rename within", [](int d, int) -> long { return renameat(d, "file", d, "new"); }},
    {"rename out", [](int d, int e) -> long { return renameat(d, "directory", e, "new"); }},
    {"rename in", [](int d, int e) -> long { return renameat(e, "directory", d, "new"); }},
};

struct LateRepliesFixture {
  GatedFileSystem fs;
  MountedFileSystem mount{fs};

  std::string Path(const std::string& name) const { return mount / name; }
  void MakeDirectoryWithContent(const std::string& name) const {
    REQUIRE(Outcome(mkdir(Path(name).c_str(), 0755)) == 0);
    REQUIRE(Outcome(mkdir(Path(name + "/directory").c_str(), 0755)) == 0);
    REQUIRE(WriteFile(Path(name + "/file"), "content") == 0);
  }
  // Checks that the kernel shows a directory's current attributes.
  void CheckShown(const std::string& name) {
    const struct stat shown = StatOf(Path(name));
    const auto is = fs.GetAttributes(shown.st_ino);
    REQUIRE_OK(is);
    CHECK(shown.st_nlink == is->links);
    CHECK(shown.st_mtim.tv_sec * 1'000'000'000 == is->mtime);
    CHECK(shown.st_ctim.tv_sec * 1'000'000'000 == is->ctime);
  }
  // Changes "d" while another thread asks for its attributes. The file system holds the `turn`th
  // read of these attributes, and so delays the reply, until this thread's change was answered.
  void ChangeWhileAsked(int turn, const Question& question, const std::function<long()>& change) {
    fs.gate.Hold(StatOf(Path("d")).st_ino, turn);
    std::thread reader([&] {
      question.ask(mount);
      fs.gate.Open();
    });
    const bool held = fs.gate.AwaitHeld();
    const int outcome = held ? Outcome(change()) : 0;
    fs.gate.Open();
    reader.join();
    REQUIRE(held);
    REQUIRE(outcome == 0);
  }
};

// The first read shows that "d" is a directory; the second read gives the reply.
TEST_CASE_METHOD(LateRepliesFixture,
                 "A late reply does not bring back a directory's old attributes") {
  const Question question = GENERATE(from_range(std::begin(kQuestions), std::end(kQuestions)));
  const Change change = GENERATE(from_range(std::begin(kChanges), std::end(kChanges)));
  const int turn = GENERATE(1, 2);
  INFO(fmt::format("{} during {}, held in reading {}", change.name, question.name, turn));
  MakeDirectoryWithContent("d");
  MakeDirectoryWithContent("e");
  const Descriptor d(Path("d"), O_RDONLY | O_DIRECTORY);
  const Descriptor e(Path("e"), O_RDONLY | O_DIRECTORY);
  CheckShown("d");
  ChangeWhileAsked(turn, question, [&] { return change.make(d.get(), e.get()); });
  CheckShown("d");
}

TEST_CASE_METHOD(LateRepliesFixture,
                 "A late reply does not bring back the mode that an access list has replaced") {
  const Question question = GENERATE(kQuestions[0], kQuestions[1]);
  INFO(question.name);
  MakeDirectoryWithContent("d");
  const std::string list = AclFromText("u::rwx,u:4002:rwx,g::---,m::rwx,o::---");
  const std::string path = Path("d");
  REQUIRE(StatOf(path).st_mode == (S_IFDIR | 0755));
  ChangeWhileAsked(2, question, [&]() -> long {
    return setxattr(path.c_str(), kAccess, list.data(), list.size(), 0);
  });
  CHECK(StatOf(path).st_mode == (S_IFDIR | 0770));
}

TEST_CASE_METHOD(LateRepliesFixture,
                 "A very late reply, or one after many changes, brings no old attributes back") {
  MakeDirectoryWithContent("d");
  const Descriptor d(Path("d"), O_RDONLY | O_DIRECTORY);
  ChangeWhileAsked(2, kQuestions[0], [&]() -> long {
    for (int i = 0; i < 10; ++i) {
      if (mkdirat(d.get(), std::to_string(i).c_str(), 0755) != 0) return -1;
      CheckShown("d");
    }
    return 0;
  });
  CheckShown("d");
}

// Collects notifications from libfuse's debug log. Must outlive the mount.
class NotificationLog {
 public:
  NotificationLog() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    auto logger = std::make_shared<spdlog::logger>("fuse", std::move(sink));
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
  }
  ~NotificationLog() { spdlog::set_default_logger(before_); }
  NotificationLog(const NotificationLog&) = delete;
  NotificationLog& operator=(const NotificationLog&) = delete;

  // Unmounts, and returns the notifications of the mount's whole lifetime.
  int CountUntilUnmounted(MountedFileSystem& mount) const {
    REQUIRE_OK(mount.Unmount());
    std::istringstream lines(text_.str());
    int count = 0;
    bool shows_requests = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.find("NOTIFY:") != std::string::npos) ++count;
      if (line.find("MKDIR") != std::string::npos) shows_requests = true;
    }
    REQUIRE(shows_requests);
    return count;
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

MountOptions Debugging() {
  MountOptions options;
  options.debug = true;
  return options;
}

// Returns the next inode number that has the same slot in the tracker's table.
InodeNumber RivalOf(InodeNumber directory) {
  constexpr fuse::AttributeReplyTracker::Thread kMaker = 1;
  for (InodeNumber number = directory + 1;; ++number) {
    const auto told = std::make_unique<fuse::AttributeReplyTracker>();
    told->NoteMade(directory, kMaker);
    told->NoteMade(number, kMaker);
    if (told->TakeOthers(directory, kMaker)) return number;
  }
}

struct LoggedFixture {
  NotificationLog log;
  MemoryFileSystem fs;
  MountedFileSystem mount{fs, Debugging()};

  std::string Path(const std::string& name) const { return mount / name; }
};

TEST_CASE_METHOD(LoggedFixture, "A single thread that changes directories causes no notification") {
  for (int i = 0; i < 20; ++i) {
    const std::string name = Path(std::to_string(i));
    REQUIRE(Outcome(mkdir(name.c_str(), 0755)) == 0);
    REQUIRE(WriteFile(name + "/file", "content") == 0);
    REQUIRE(Outcome(link((name + "/file").c_str(), (name + "-link").c_str())) == 0);
    REQUIRE(Outcome(rename((name + "/file").c_str(), (name + "-file").c_str())) == 0);
    REQUIRE(Outcome(unlink((name + "-link").c_str())) == 0);
    REQUIRE(Outcome(rmdir(name.c_str())) == 0);
    List(mount.path());
  }
  CHECK(log.CountUntilUnmounted(mount) == 0);
}

// The new directory evicts another one from the tracker's table, but does not count as replied to
// several threads.
TEST_CASE_METHOD(LoggedFixture,
                 "A new directory counts as replied to its maker only, even after an eviction") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  AskFor(Path("d"), STATX_BASIC_STATS);
  const InodeNumber rival = RivalOf(StatOf(Path("d")).st_ino);
  for (InodeNumber made = 0; made + 1 < rival;) {
    const auto skipped = fs.MakeNode(kRootInode, "skipped", S_IFREG | 0644, 0, {});
    REQUIRE_OK(skipped);
    made = skipped->inode;
    fs.Forget(made, 1);
    REQUIRE_OK(fs.Unlink(kRootInode, "skipped"));
  }
  REQUIRE(Outcome(mkdir(Path("new").c_str(), 0755)) == 0);
  REQUIRE(StatOf(Path("new")).st_ino == rival);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(Outcome(mkdir(Path(fmt::format("new/{}", i)).c_str(), 0755)) == 0);
    static_cast<void>(StatOf(Path("new")));
  }
  CHECK(log.CountUntilUnmounted(mount) == 0);
}

TEST_CASE_METHOD(LoggedFixture,
                 "A reply to another thread costs one notification, not one per change") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  std::thread([this] { AskFor(Path("d"), STATX_BASIC_STATS); }).join();
  for (int i = 0; i < 20; ++i) {
    REQUIRE(Outcome(mkdir(Path(fmt::format("d/{}", i)).c_str(), 0755)) == 0);
  }
  CHECK(log.CountUntilUnmounted(mount) == 1);
}

TEST_CASE_METHOD(LoggedFixture, "A refused change and a file without a name cost no notification") {
  REQUIRE(Outcome(mkdir(Path("d").c_str(), 0755)) == 0);
  for (const char* name : {"d/a", "d/a/content", "d/b"}) {
    REQUIRE(Outcome(mkdir(Path(name).c_str(), 0755)) == 0);
  }
  Descriptor d(Path("d"), O_RDONLY | O_DIRECTORY);
  std::thread([this] { AskFor(Path("d"), STATX_BASIC_STATS); }).join();
  CHECK(Outcome(unlinkat(d.get(), "a", AT_REMOVEDIR)) == ENOTEMPTY);
  CHECK(Outcome(renameat(d.get(), "b", d.get(), "a")) == ENOTEMPTY);
  CHECK(Descriptor(Path("d"), O_TMPFILE | O_RDWR).error() == 0);
  REQUIRE(d.Close() == 0);
  CHECK(log.CountUntilUnmounted(mount) == 0);
}

}  // namespace
}  // namespace siltfs::testing
