// The names of the simulated device: the tree its users see, the tree a power cut leaves, and the
// name changes in between. Part of SimEnv (sim_env.h specifies the model); not thread-safe,
// SimDisk's mutex guards it.
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
  uint64_t id = 0;  // of all nodes of its device, in the order in which they were made

  // Of a file:
  SimContent content;
  bool named = false;       // in the tree its users see
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
  // What stood there, for it may still be open.
  Result<SimNodePtr> RemoveFile(std::string_view path);
  Status RemoveDirectory(std::string_view path);
  // The file that was replaced, or null.
  Result<SimNodePtr> Rename(std::string_view from, std::string_view to);
  // With `commit` false, only says whether it could.
  Status SyncDirectory(std::string_view path, bool commit);
  // Leaves the durable names, and the files they lead to as their own Crash leaves them.
  void Crash(const CrashPolicy& policy, Random& random);
  // The same tree with the same contents, of nodes of its own. Nothing in it is open or locked.
  SimNames Copy() const;
  // The file of that number, also without a name; null if there is none that a crash may leave.
  SimNodePtr FindFile(uint64_t id) const;
  // Pages charged to all files that have a name.
  uint64_t ChargedPages() const;

 private:
  // A place in a directory: its name, absent or there.
  struct Place {
    SimNodePtr directory;
    std::string name;
    SimNodePtr node;  // null: nothing there
  };
  // One name's new state; null: absent.
  struct Change {
    SimNodePtr directory;
    std::string name;
    SimNodePtr node;
    bool synced = false;
  };
  using Operation = std::vector<Change>;  // durable as a whole

  Result<Place> Locate(std::string_view path) const;
  void Do(Operation operation);
  static void Apply(const Operation& operation);
  void CommitWhatCan();
  // Of the pending operations those that survive, each name's oldest first.
  void ApplySome(Random& random);

  SimNodePtr root_;
  std::map<uint64_t, std::weak_ptr<SimNode>> files_;  // by number
  std::vector<Operation> pending_;                    // not durable yet, oldest first
};

}  // namespace siltfs
