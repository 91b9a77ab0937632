// The names of the simulated device: the tree that users see, the durable tree that a power cut
// leaves, and the name changes in between. Part of SimEnv (sim_env.h specifies the model); not
// thread-safe, SimDisk's mutex guards it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/random.h"
#include "store/base/result.h"
#include "store/env/sim_content.h"

namespace siltfs {

struct SimNode {
  explicit SimNode(FileType node_type) : type(node_type) {}

  const FileType type;
  uint64_t id = 0;  // unique on its device, in order of creation

  // Of a file:
  SimContent content;
  bool named = false;       // in the tree that users see
  uint64_t open_files = 0;  // File objects
  bool locked = false;

  // Of a directory:
  using Entries = std::map<std::string, std::shared_ptr<SimNode>, std::less<>>;
  Entries entries;
  Entries durable_entries;
};

using SimNodePtr = std::shared_ptr<SimNode>;

class SimNames {
 public:
  SimNames();

  Result<SimNodePtr> Find(std::string_view path) const;
  Status Add(std::string_view path, SimNodePtr node);
  // Removes a file and returns it; the file may still be open.
  Result<SimNodePtr> RemoveFile(std::string_view path);
  Status RemoveDirectory(std::string_view path);
  // Renames; returns the replaced file, or null.
  Result<SimNodePtr> Rename(std::string_view from, std::string_view to);
  // With `commit` false, only checks for errors.
  Status SyncDirectory(std::string_view path, bool commit);
  // Acts on a power cut: keeps the durable names, and calls Crash on their files.
  void Crash(const CrashPolicy& policy, Random& random);
  // A deep copy of the tree and its contents. Nothing in it is open or locked.
  SimNames Copy() const;
  // The file with that id, even if its name was removed; null if no crash could bring it back.
  SimNodePtr FindFile(uint64_t id) const;
  // Pages charged to all files with names.
  uint64_t ChargedPages() const;

 private:
  // A name in a directory, present or absent.
  struct Place {
    SimNodePtr directory;
    std::string name;
    SimNodePtr node;  // null: absent
  };
  // The new state of one name; `node` is null if the name is absent.
  struct Change {
    SimNodePtr directory;
    std::string name;
    SimNodePtr node;
    bool synced = false;
  };
  using Operation = std::vector<Change>;  // becomes durable as a whole

  Result<Place> Locate(std::string_view path) const;
  void Do(Operation operation);
  static void Apply(const Operation& operation);
  void CommitWhatCan();
  // Applies a random subset of the pending operations. A change of a name is never applied without
  // the older changes of that name.
  void ApplySome(Random& random);

  SimNodePtr root_;
  std::map<uint64_t, std::weak_ptr<SimNode>> files_;  // by id
  std::vector<Operation> pending_;                    // not durable yet, oldest first
};

}  // namespace siltfs
