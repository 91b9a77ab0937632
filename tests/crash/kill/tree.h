// The model: the tree below a writer's directory after some of its operations have reached the
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
  Content content;               // for a file
  std::optional<Content> dirty;  // the newest content, perhaps still in the kernel's cache
  std::string target;            // for a symlink
  std::map<std::string, std::string> xattrs;
  std::set<std::string> names;
  // Numbers of the last operations that changed the node or wrote to it. The Recorder sets them.
  std::optional<size_t> last_change;
  std::optional<size_t> last_write;
};

class Tree {
 public:
  Tree();
  Tree(Tree&&) = default;
  Tree& operator=(Tree&&) = default;

  // Returns a copy with its own nodes, whose last_change and last_write are not set.
  Tree Copy() const;

  // Applies the operation. Returns the names of the nodes that it may have changed.
  std::set<std::string> Apply(const Operation& operation);

  const std::map<std::string, std::shared_ptr<Node>>& names() const { return names_; }
  // Returns null if there is no such node; "" is the directory itself.
  std::shared_ptr<Node> Find(const std::string& name) const;
  std::shared_ptr<Node> DirectoryOf(const std::string& name) const;

 private:
  void Enter(const std::string& name, const std::shared_ptr<Node>& node);
  void Drop(const std::string& name, std::set<std::string>& changed);

  std::map<std::string, std::shared_ptr<Node>> names_;
  std::shared_ptr<Node> root_;
};

}  // namespace siltfs::killtest
