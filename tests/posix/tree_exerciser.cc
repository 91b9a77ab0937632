#include "tests/posix/tree_exerciser.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace siltfs::testing {
namespace {

constexpr uint64_t kNames = 6;  // per directory: few, so that processes conflict
constexpr uint64_t kMaxDepth = 3;
constexpr uint64_t kMaxFileBytes = 400'000;

}  // namespace

TreeExerciser::TreeExerciser(std::string root, uint64_t seed)
    : root_(std::move(root)), seed_(seed), random_(seed) {}

void TreeExerciser::Run(uint64_t operations) {
  for (step_ = 1; step_ <= operations; ++step_) Step();
}

void TreeExerciser::Step() {
  static constexpr void (TreeExerciser::*kActs[])() = {
      &TreeExerciser::Create,        &TreeExerciser::Create,
      &TreeExerciser::Write,         &TreeExerciser::Write,
      &TreeExerciser::Read,          &TreeExerciser::Truncate,
      &TreeExerciser::CopyRange,     &TreeExerciser::Rename,
      &TreeExerciser::Rename,        &TreeExerciser::Link,
      &TreeExerciser::Unlink,        &TreeExerciser::MakeDirectory,
      &TreeExerciser::MakeDirectory, &TreeExerciser::MakeDirectory,
      &TreeExerciser::MakeSymlink,   &TreeExerciser::RemoveDirectory,
      &TreeExerciser::SetXattr,      &TreeExerciser::List,
      &TreeExerciser::Stat};
  (this->*kActs[random_.Below(std::size(kActs))])();
}

void TreeExerciser::Create() {
  const std::string path = AnyPath();
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | (random_.OneIn(2) ? O_EXCL : 0), 0644);
  if (!Judge("create", path, fd, {EEXIST, EISDIR})) return;
  const Bytes data = Content();
  Judge("write", path, write(fd, data.data(), data.size()));
  Judge("close", path, close(fd));
}

void TreeExerciser::Write() {
  const int fd = OpenAny("open", O_WRONLY | (random_.OneIn(4) ? O_APPEND : 0));
  if (fd < 0) return;
  const Bytes data = Content();
  const auto offset = static_cast<off_t>(random_.Below(kMaxFileBytes));
  Judge("write", "", pwrite(fd, data.data(), data.size(), offset));
  if (random_.OneIn(8)) Judge("fsync", "", fsync(fd));
  Judge("close", "", close(fd));
}

void TreeExerciser::Read() {
  const int fd = OpenAny("open", O_RDONLY);
  if (fd < 0) return;
  Bytes data(random_.Below(100'000) + 1);
  const auto offset = static_cast<off_t>(random_.Below(kMaxFileBytes));
  Judge("read", "", pread(fd, data.data(), data.size(), offset), {EISDIR});
  Judge("seek", "", lseek(fd, offset, random_.OneIn(2) ? SEEK_DATA : SEEK_HOLE), {ENXIO});
  Judge("close", "", close(fd));
}

void TreeExerciser::Truncate() {
  const std::string path = AnyPath();
  Judge("truncate", path, truncate(path.c_str(), static_cast<off_t>(random_.Below(kMaxFileBytes))),
        {EISDIR, EINVAL});
}

void TreeExerciser::CopyRange() {
  const int source = OpenAny("open", O_RDONLY);
  const int target = OpenAny("open", O_RDWR);
  if (source >= 0 && target >= 0) {
    auto from = static_cast<off_t>(random_.Below(20'000));
    auto to = static_cast<off_t>(random_.Below(kMaxFileBytes));
    // EINVAL is possible: the two may be the same file with overlapping ranges, or one may be a
    // directory.
    Judge("copy", "",
          copy_file_range(source, &from, target, &to, random_.Below(kMaxFileBytes) + 1, 0),
          {EINVAL, EISDIR});
  }
  if (source >= 0) close(source);
  if (target >= 0) close(target);
}

void TreeExerciser::Rename() {
  const std::string from = AnyPath();
  const std::string to = AnyPath();
  const unsigned flags[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
  const unsigned flag = flags[random_.Below(4)];
  // EINVAL is possible: a directory may be moved into itself. EBUSY is not expected, because there
  // are no mounts in the tree.
  Judge(flag == RENAME_EXCHANGE ? "exchange" : "rename", from + " " + to,
        renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flag),
        {EINVAL, EEXIST, EISDIR, ENOTEMPTY});
}

void TreeExerciser::Link() {
  const std::string from = AnyPath();
  const std::string to = AnyPath();
  Judge("link", from + " " + to, link(from.c_str(), to.c_str()), {EPERM, EEXIST});
}

void TreeExerciser::Unlink() {
  const std::string path = AnyPath();
  Judge("unlink", path, unlink(path.c_str()), {EISDIR});
}

void TreeExerciser::MakeDirectory() {
  const std::string path = AnyPath();
  Judge("mkdir", path, mkdir(path.c_str(), 0755), {EEXIST});
}

void TreeExerciser::RemoveDirectory() {
  const std::string path = AnyPath();
  Judge("rmdir", path, rmdir(path.c_str()), {ENOTEMPTY});
}

void TreeExerciser::MakeSymlink() {
  const std::string path = AnyPath();
  const std::string target = "n" + std::to_string(random_.Below(kNames));
  Judge("symlink", path, symlink(target.c_str(), path.c_str()), {EEXIST});
}

void TreeExerciser::SetXattr() {
  const std::string path = AnyPath();
  const std::string name = "user.a" + std::to_string(random_.Below(3));
  if (random_.OneIn(3)) {
    Judge("removexattr", path, removexattr(path.c_str(), name.c_str()), {ENODATA});
    return;
  }
  const std::string value(random_.Below(300), 'v');
  Judge("setxattr", path, setxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0));
}

void TreeExerciser::List() {
  const std::string path = AnyPath();
  DIR* stream = opendir(path.c_str());
  if (!Judge("opendir", path, stream == nullptr ? -1 : 0)) return;
  errno = 0;
  while (readdir(stream) != nullptr) {
  }
  Judge("readdir", path, errno == 0 ? 0 : -1);
  closedir(stream);
}

void TreeExerciser::Stat() {
  const std::string path = AnyPath();
  struct stat stat = {};
  Judge("stat", path, ::stat(path.c_str(), &stat));
}

std::string TreeExerciser::AnyPath() {
  std::string path = root_;
  for (uint64_t depth = random_.Below(kMaxDepth) + 1; depth > 0; --depth) {
    path += "/n" + std::to_string(random_.Below(kNames));
  }
  return path;
}

int TreeExerciser::OpenAny(std::string_view call, int flags) {
  const std::string path = AnyPath();
  const int fd = open(path.c_str(), flags);
  return Judge(call, path, fd, {EISDIR}) ? fd : -1;
}

// Returns random bytes, or one of a few repeated texts.
Bytes TreeExerciser::Content() {
  Bytes data(random_.Below(random_.OneIn(4) ? 100'000 : 5'000) + 1);
  if (random_.OneIn(2)) {
    random_.Fill(data);
  } else {
    Random(random_.Below(5)).Fill(data);
  }
  return data;
}

bool TreeExerciser::Judge(std::string_view call, const std::string& path, long result,
                          const std::set<int>& also) {
  if (result >= 0) {
    ++successes_[call];
    return true;
  }
  const int error = errno;
  // Another process may have removed a part of the path. Calls without a path cannot fail for this
  // reason.
  const bool lost = !path.empty() && (error == ENOENT || error == ENOTDIR || error == ELOOP);
  if (lost || also.contains(error)) return false;
  throw UnexpectedError("seed " + std::to_string(seed_) + ", step " + std::to_string(step_) + ": " +
                        std::string(call) + " " + path + ": " + std::strerror(error));
}

}  // namespace siltfs::testing
