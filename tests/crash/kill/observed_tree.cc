#include "tests/crash/kill/observed_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "store/env/posix_descriptor.h"
#include "tests/crash/kill/failure.h"

namespace siltfs::killtest {
namespace {

Bytes ReadContent(const std::string& path, size_t size) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw SystemFailure("open " + path);
  Bytes bytes(size + 1);  // with room for one byte more, to see whether the file ends
  size_t filled = 0;
  for (;;) {
    const ssize_t count = read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (count < 0) throw SystemFailure("read " + path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled == bytes.size()) throw Failure(path + ": is longer than its size");
  }
  if (filled != size) throw Failure(path + ": ends before its size");
  bytes.resize(size);
  return bytes;
}

std::string ReadTarget(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = readlink(path.c_str(), target.data(), target.size());
  if (length < 0) throw SystemFailure("readlink " + path);
  return {target.data(), static_cast<size_t>(length)};
}

std::map<std::string, std::string> ReadXattrs(const std::string& path) {
  std::map<std::string, std::string> xattrs;
  std::array<char, 4096> names{};
  const ssize_t length = llistxattr(path.c_str(), names.data(), names.size());
  if (length < 0) throw SystemFailure("listxattr " + path);
  for (ssize_t at = 0; at < length;) {
    const std::string name(names.data() + at);
    at += static_cast<ssize_t>(name.size()) + 1;
    std::array<char, 4096> value{};
    const ssize_t size = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
    if (size < 0) throw SystemFailure("getxattr " + path);
    xattrs[name] = std::string(value.data(), static_cast<size_t>(size));
  }
  return xattrs;
}

std::shared_ptr<const ObservedFile> ReadNode(const std::string& path, const struct stat& stat) {
  auto file = std::make_shared<ObservedFile>();
  file->inode = stat.st_ino;
  file->links = stat.st_nlink;
  if (S_ISDIR(stat.st_mode)) {
    file->type = NodeType::kDirectory;
  } else if (S_ISLNK(stat.st_mode)) {
    file->type = NodeType::kSymlink;
    file->target = ReadTarget(path);
  } else if (S_ISREG(stat.st_mode)) {
    file->content = Content(ReadContent(path, static_cast<size_t>(stat.st_size)));
    file->xattrs = ReadXattrs(path);
  } else {
    throw Failure(path + ": has a type that no writer makes");
  }
  return file;
}

std::vector<std::string> List(const std::string& directory) {
  struct Closer {
    void operator()(DIR* stream) const { closedir(stream); }
  };
  const std::unique_ptr<DIR, Closer> stream(opendir(directory.c_str()));
  if (!stream) throw SystemFailure("opendir " + directory);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(stream.get());
    if (entry == nullptr && errno != 0) throw SystemFailure("readdir " + directory);
    if (entry == nullptr) return names;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
}

void ReadBelow(const std::string& root, const std::string& prefix,
               std::map<uint64_t, std::shared_ptr<const ObservedFile>>& known, ObservedTree& tree) {
  for (const std::string& entry : List(root + "/" + prefix)) {
    const std::string name = prefix + entry;
    const std::string path = root + "/" + name;
    struct stat stat {};
    if (lstat(path.c_str(), &stat) != 0) throw SystemFailure("lstat " + path);
    auto& file = known[stat.st_ino];
    if (!file) file = ReadNode(path, stat);
    if (!tree.emplace(name, file).second) throw Failure(path + ": is listed twice");
    if (file->type == NodeType::kDirectory) ReadBelow(root, name + "/", known, tree);
  }
}

}  // namespace

ObservedTree ReadTree(const std::string& directory) {
  ObservedTree tree;
  std::map<uint64_t, std::shared_ptr<const ObservedFile>> known;
  ReadBelow(directory, "", known, tree);
  return tree;
}

}  // namespace siltfs::killtest
