// The model: the tree below a writer's directory as it is once some operations have reached the
// core. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/crash/kill/history.h"

namespace siltfs::killtest {

enum class NodeType : uint8_t { kFile, kDirectory, kSymlink };

struct Node {
  NodeType type = NodeType::kFile;
  Content content;  // a file's
  std::optional<Content>
      dirty;           // written over it, but may be in the kernel's cache in part or whole
  std::string target;  // a symlink's
  std::map<std::string, std::string> xattrs;
  std::set<std::string> names;
  // The numbers of the last operations that changed it, or wrote to it. For whoever records them.
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

class Tree {
 public:
  Tree();
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  // With nodes of its own, which no operation has changed.
  Tree Copy() const;

  // Returns the names for which something may have changed.
  std::set<std::string> Apply(const Operation& operation);

  const std::map<std::string, std::shared_ptr<Node>>& names() const { return names_; }
  // Null if there is none; "" is the directory itself.
  std::shared_ptr<Node> Find(const std::string& name) const;
  std::shared_ptr<Node> DirectoryOf(const std::string& name) const;

 private:
  void Enter(const std::string& name, const std::shared_ptr<Node>& node);
  void Drop(const std::string& name, std::set<std::string>& changed);

  std::map<std::string, std::shared_ptr<Node>> names_;
  std::shared_ptr<Node> root_;
};

}  // namespace siltfs::killtest
