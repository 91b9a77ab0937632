#include "fs/fuse/writeback.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "store/base/result.h"

namespace siltfs::fuse {
namespace {

// A file handle as the kernel makes it for FUSE: node id (high word first) and generation.
constexpr int kNodeHandle = 0x81;  // FILEID_INO64_GEN
constexpr size_t kNodeHandleBytes = 12;

class NodeHandle {
 public:
  using Words = std::array<uint32_t, 3>;
  static_assert(sizeof(Words) == kNodeHandleBytes);

  explicit NodeHandle(const KernelInode& inode = {}) {
    header().handle_bytes = kNodeHandleBytes;
    header().handle_type = kNodeHandle;
    const Words words = {static_cast<uint32_t>(inode.number >> 32),
                         static_cast<uint32_t>(inode.number),
                         static_cast<uint32_t>(inode.generation)};
    std::memcpy(bytes_.data() + sizeof(file_handle), words.data(), kNodeHandleBytes);
  }
  file_handle& header() { return *reinterpret_cast<file_handle*>(bytes_.data()); }
  bool operator==(const NodeHandle&) const = default;

 private:
  alignas(file_handle) std::array<uint8_t, sizeof(file_handle) + kNodeHandleBytes> bytes_ = {};
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // Returns the result of close(2).
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

Status Failed(const char* what) {
  return {StatusCode::kUnsupported, std::string(what) + ": " + std::strerror(errno)};
}

uint64_t DeviceNumber(uint32_t major, uint32_t minor) { return uint64_t{major} << 32 | minor; }

// Whether `root` is the root of the mount with this device, and its handle has the expected form.
bool KnowsHandles(int root, uint64_t device) {
  struct stat about = {};
  if (fstat(root, &about) != 0 || DeviceNumber(major(about.st_dev), minor(about.st_dev)) != device)
    return false;
  NodeHandle handle;
  int mount_id = 0;
  if (name_to_handle_at(root, "", &handle.header(), &mount_id, AT_EMPTY_PATH) != 0) return false;
  return handle == NodeHandle({kRootInode, 0});
}

int OpenByHandle(const Descriptor& root, const KernelInode& inode) {
  NodeHandle handle(inode);
  return open_by_handle_at(root.get(), &handle.header(), O_RDONLY | O_CLOEXEC);
}

Status SyncRange(const std::string& mountpoint, uint64_t device, const KernelInode& inode) {
  const Descriptor root(open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return Failed("the mountpoint cannot be opened");
  if (!KnowsHandles(root.get(), device)) return Failed("files of this mount have no handles");
  const Descriptor file(OpenByHandle(root, inode));
  if (file.get() < 0) return Failed("the file cannot be opened by its handle");
  // This is not fsync, because fsync would wait for the inode's lock, which the caller of lseek
  // holds.
  constexpr unsigned kWriteAndWait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  if (sync_file_range(file.get(), 0, 0, kWriteAndWait) != 0)
    return Failed("the file cannot be written back");
  return {};
}

// Opens and closes the files. Closing a file waits until its dirty data is written back and the
// writes are answered.
Status OpenAndClose(const std::string& mountpoint, uint64_t device,
                    const std::vector<KernelInode>& inodes) {
  const Descriptor root(open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root.get() < 0) return Failed("the mountpoint cannot be opened");
  if (!KnowsHandles(root.get(), device)) return Failed("files of this mount have no handles");
  for (const KernelInode& inode : inodes) {
    Descriptor file(OpenByHandle(root, inode));
    if (file.get() < 0 && (errno == ESTALE || errno == ENOENT)) continue;
    if (file.get() < 0) return Failed("a file cannot be opened by its handle");
    if (file.Close() != 0)
      return {StatusCode::kIoError,
              std::string("a file could not be written back: ") + std::strerror(errno)};
  }
  return {};
}

// Runs `wait` on a new thread and returns its result. In `wait`, the new thread waits in the kernel
// for answers of this process, and no signal ends this. If the process were killed during the wait,
// the waiting thread would stay, keep the descriptor of the connection to the kernel open, wait
// forever and keep the store locked. So the new thread gives up its share in the process's
// descriptors. When all other threads of a killed process are gone, the kernel closes the
// connection, which ends the wait.
Status OnThreadOfItsOwn(const std::function<Status()>& wait) {
  Status outcome;
  outcome.IgnoreError("no outcome yet");
  std::thread waiting([&] {
    if (close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) != 0) {
      outcome = Failed("the new thread cannot give up the process's descriptors");
    } else {
      outcome = wait();
    }
  });
  waiting.join();
  return outcome;
}

// Counts the unanswered requests of this connection.
Result<uint64_t> CountWaiting(uint64_t device) {
  const dev_t number = makedev(static_cast<unsigned>(device >> 32), static_cast<uint32_t>(device));
  const std::string path = "/sys/fs/fuse/connections/" + std::to_string(number) + "/waiting";
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return Failed("the kernel does not report the number of unanswered requests");
  std::array<char, 32> text = {};
  const ssize_t got = read(file.get(), text.data(), text.size());
  uint64_t count = 0;
  if (got <= 0 || std::from_chars(text.data(), text.data() + got, count).ec != std::errc())
    return Failed("the kernel does not report the number of unanswered requests");
  return count;
}

}  // namespace

uint64_t DeviceOf(const std::string& mountpoint) {
  struct statx about = {};
  if (statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &about) != 0)
    return 0;
  return DeviceNumber(about.stx_dev_major, about.stx_dev_minor);
}

Status WriteBack(const std::string& mountpoint, uint64_t device, const KernelInode& inode) {
  return OnThreadOfItsOwn([&] { return SyncRange(mountpoint, device, inode); });
}

Status WriteBackFiles(const std::string& mountpoint, uint64_t device,
                      const std::vector<KernelInode>& inodes) {
  return OnThreadOfItsOwn([&] { return OpenAndClose(mountpoint, device, inodes); });
}

Status WaitUntilAnswered(uint64_t device) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{5};
  constexpr std::chrono::seconds kPatience{60};
  for (const auto deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t waiting, CountWaiting(device));
    if (waiting == 0) return {};
    std::this_thread::sleep_for(kPause);
  }
  return {StatusCode::kInUse,
          "requests came without a pause, so it is not known whether all were answered"};
}

void FilesOpenForWriting::Add(InodeNumber inode) {
  const MutexLock lock(mutex_);
  ++counts_[inode];
}

bool FilesOpenForWriting::Remove(InodeNumber inode) {
  const MutexLock lock(mutex_);
  const auto found = counts_.find(inode);
  if (found == counts_.end() || --found->second > 0) return false;
  counts_.erase(found);
  return true;
}

bool FilesOpenForWriting::Contains(InodeNumber inode) const {
  const MutexLock lock(mutex_);
  return counts_.contains(inode);
}

std::vector<InodeNumber> FilesOpenForWriting::All() const {
  const MutexLock lock(mutex_);
  std::vector<InodeNumber> all;
  all.reserve(counts_.size());
  for (const auto& [inode, count] : counts_) all.push_back(inode);
  return all;
}

void BackgroundTasks::Finish() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

bool BackgroundTasks::Add(std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (ending_) return false;
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_ && threads_.size() < kMaxThreads)
    threads_.emplace_back([this] { Run(); });
  changed_.NotifyAll();
  return true;
}

void BackgroundTasks::Run() {
  for (;;) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      ++idle_;
      while (tasks_.empty() && !ending_) changed_.Wait(mutex_);
      --idle_;
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace siltfs::fuse
