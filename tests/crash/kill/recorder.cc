#include "tests/crash/kill/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "tests/crash/kill/failure.h"

namespace siltfs::killtest {

Recorder::Recorder(std::string directory, RoundState& round, Tree tree)
    : directory_(std::move(directory)), round_(round), tree_(std::move(tree)) {}

template <typename Call>
auto Recorder::Require(const std::string& what, Call call) {
  const auto result = RetryInterrupted(call);
  if (result >= 0) return result;
  if (round_.killing) throw MountGone();
  throw SystemFailure(what + ", with the daemon alive");
}

// Records the operation before it begins, because it may reach the store even if it never returns.
template <typename Call>
void Recorder::Do(Operation operation, Call call) {
  const size_t number = history_.operations.size();
  operation.begin = round_.clock.Now();
  operation.position = round_.position();
  history_.operations.push_back(operation);
  Require(directory_ + ": " + DescribeOperation(operation), call);
  history_.operations[number].end = round_.clock.Now();

  const bool is_write = operation.kind == OperationKind::kWrite;
  const bool is_write_back = operation.kind == OperationKind::kWriteBack;
  std::vector<std::shared_ptr<Node>> touched{tree_.Find(operation.name)};
  // A link changes nothing in the directory of the old name.
  if (!is_write && !is_write_back && operation.kind != OperationKind::kTruncate &&
      operation.kind != OperationKind::kSetXattr && operation.kind != OperationKind::kLink) {
    touched.push_back(tree_.DirectoryOf(operation.name));
  }
  if (operation.kind == OperationKind::kRename || operation.kind == OperationKind::kLink)
    touched.push_back(tree_.DirectoryOf(operation.other));
  tree_.Apply(operation);
  touched.push_back(tree_.Find(operation.name));  // the node that the operation may have created
  for (const auto& node : touched) {
    if (!node) continue;
    if (!is_write_back) node->last_change = number;
    if (is_write) node->last_write = number;
  }
}

Descriptor Recorder::Open(const std::string& name) {
  return Descriptor(Require("open " + PathOf(name),
                            [&] { return open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC); }));
}

Descriptor Recorder::Create(const std::string& name) {
  int file = -1;
  Do({.kind = OperationKind::kCreate, .name = name, .other = {}, .content = {}}, [&] {
    return file = open(PathOf(name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  });
  return Descriptor(file);
}

void Recorder::WriteAt(const Descriptor& file, const std::string& name, size_t offset,
                       ByteView bytes, Content content) {
  Do({.kind = OperationKind::kWrite, .name = name, .other = {}, .content = std::move(content)},
     [&]() -> ssize_t {
       size_t done = 0;
       while (done < bytes.size()) {
         const ssize_t count = pwrite(file.get(), bytes.data() + done, bytes.size() - done,
                                      static_cast<off_t>(offset + done));
         if (count < 0) return count;
         done += static_cast<size_t>(count);
       }
       return 0;
     });
}

void Recorder::Append(const Descriptor& file, const std::string& name, ByteView bytes) {
  const std::shared_ptr<Node> node = tree_.Find(name);
  const Content& before = node->dirty ? *node->dirty : node->content;
  WriteAt(file, name, before.size(), bytes, before.Append(bytes));
}

void Recorder::Overwrite(const Descriptor& file, const std::string& name, size_t offset,
                         ByteView bytes) {
  WriteAt(file, name, offset, bytes, tree_.Find(name)->content.Overwrite(offset, bytes));
}

void Recorder::Truncate(const Descriptor& file, const std::string& name, size_t size) {
  Do({.kind = OperationKind::kTruncate,
      .name = name,
      .other = {},
      .content = tree_.Find(name)->content.Truncate(size)},
     [&] { return ftruncate(file.get(), static_cast<off_t>(size)); });
}

void Recorder::Synced(Node& node) {
  history_.syncs.push_back({.position = round_.position(),
                            .last_change = node.last_change,
                            .last_write = node.last_write});
  if (node.last_write) history_.operations[*node.last_write].written_back = true;
  if (node.last_change) history_.MadeDurable(*node.last_change);
}

void Recorder::SyncFile(const Descriptor& file, const std::string& name) {
  Do({.kind = OperationKind::kWriteBack, .name = name, .other = {}, .content = {}},
     [&] { return fsync(file.get()); });
  Synced(*tree_.Find(name));
}

void Recorder::Close(Descriptor file, const std::string& name) {
  Do({.kind = OperationKind::kWriteBack, .name = name, .other = {}, .content = {}},
     [&] { return close(file.Release()); });
}

void Recorder::Rename(const std::string& name, const std::string& new_name) {
  Do({.kind = OperationKind::kRename, .name = name, .other = new_name, .content = {}},
     [&] { return rename(PathOf(name).c_str(), PathOf(new_name).c_str()); });
}

void Recorder::Link(const std::string& name, const std::string& new_name) {
  Do({.kind = OperationKind::kLink, .name = name, .other = new_name, .content = {}},
     [&] { return link(PathOf(name).c_str(), PathOf(new_name).c_str()); });
}

void Recorder::Unlink(const std::string& name) {
  Do({.kind = OperationKind::kUnlink, .name = name, .other = {}, .content = {}},
     [&] { return unlink(PathOf(name).c_str()); });
}

void Recorder::MakeDirectory(const std::string& name) {
  Do({.kind = OperationKind::kMakeDirectory, .name = name, .other = {}, .content = {}},
     [&] { return mkdir(PathOf(name).c_str(), 0755); });
}

void Recorder::RemoveDirectory(const std::string& name) {
  Do({.kind = OperationKind::kRemoveDirectory, .name = name, .other = {}, .content = {}},
     [&] { return rmdir(PathOf(name).c_str()); });
}

void Recorder::MakeSymlink(const std::string& name, const std::string& target) {
  Do({.kind = OperationKind::kMakeSymlink, .name = name, .other = target, .content = {}},
     [&] { return symlink(target.c_str(), PathOf(name).c_str()); });
}

void Recorder::SetXattr(const std::string& name, const std::string& attribute,
                        const std::string& value) {
  const ByteView bytes = AsBytes(value);
  Do({.kind = OperationKind::kSetXattr,
      .name = name,
      .other = attribute,
      .content = Content(Bytes(bytes.begin(), bytes.end()))},
     [&] {
       return setxattr(PathOf(name).c_str(), attribute.c_str(), value.data(), value.size(), 0);
     });
}

void Recorder::SyncDirectory(const std::string& name) {
  const Descriptor directory(Require("open " + PathOf(name), [&] {
    return open(PathOf(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }));
  Require("fsync " + PathOf(name), [&] { return fsync(directory.get()); });
  Synced(*tree_.Find(name));
}

}  // namespace siltfs::killtest
