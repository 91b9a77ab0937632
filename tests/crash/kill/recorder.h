// Performs operations below a writer's directory on the mount. Records each operation before and
// after it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <string>

#include "store/env/posix_descriptor.h"
#include "tests/crash/kill/history.h"
#include "tests/crash/kill/tree.h"

namespace siltfs::killtest {

// Ends a writer after its daemon was killed.
class MountGone : public std::exception {
 public:
  const char* what() const noexcept override { return "the mount is gone"; }
};

// State shared by the writers of a round.
struct RoundState {
  Clock clock;
  std::atomic<bool> stop = false;
  std::atomic<bool> killing = false;  // set before the daemon is killed: errors are expected
  // Returns the length of the device's log, if the device below the store records one. All threads
  // call it.
  std::function<uint64_t()> position = [] { return uint64_t{0}; };
};

// Belongs to one writer, on the writer's thread. If a call fails because the daemon was killed, it
// throws MountGone; for any other reason it throws Failure.
class Recorder {
 public:
  // Borrows `round`. `tree` is the tree at the beginning.
  Recorder(std::string directory, RoundState& round, Tree tree);

  const Tree& tree() const { return tree_; }
  const History& history() const { return history_; }
  bool stopped() const { return round_.stop; }

  Descriptor Open(const std::string& name);
  Descriptor Create(const std::string& name);  // `name` must not exist
  void Append(const Descriptor& file, const std::string& name, ByteView bytes);
  void Overwrite(const Descriptor& file, const std::string& name, size_t offset, ByteView bytes);
  void Truncate(const Descriptor& file, const std::string& name, size_t size);
  void SyncFile(const Descriptor& file, const std::string& name);
  void Close(Descriptor file, const std::string& name);
  void Rename(const std::string& name, const std::string& new_name);
  void Link(const std::string& name, const std::string& new_name);
  void Unlink(const std::string& name);
  void MakeDirectory(const std::string& name);
  void RemoveDirectory(const std::string& name);
  void MakeSymlink(const std::string& name, const std::string& target);
  void SetXattr(const std::string& name, const std::string& attribute, const std::string& value);
  void SyncDirectory(const std::string& name);  // "" is the writer's directory

 private:
  template <typename Call>
  void Do(Operation operation, Call call);
  template <typename Call>
  auto Require(const std::string& what, Call call);
  void WriteAt(const Descriptor& file, const std::string& name, size_t offset, ByteView bytes,
               Content content);
  void Synced(Node& node);
  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_;
  RoundState& round_;
  Tree tree_;
  History history_;
};

}  // namespace siltfs::killtest
